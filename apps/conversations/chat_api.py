"""`POST /chat` in both forms, its events, providers and models, and Stop (docs/contract.md §2)."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.views.decorators.http import require_GET, require_POST

from apps.agents.providers import registry
from apps.agents.providers.base import Provider
from apps.conversations import chat_body, event_streams, runner
from apps.conversations.renderers import sse
from apps.conversations.renderers.json import NO_INFLIGHT
from apps.conversations.serializers import Inflight, refused
from apps.conversations.stream import RunLog
from apps.conversations.wire import not_stored
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.core.types import JSON
from apps.logs.entries import timed_entry

logger = logging.getLogger("codeinfo.conversations")


@require_POST
async def chat(request: HttpRequest) -> HttpResponseBase:
    """`POST /chat`: start a run. Returns 202 with its ids, or an event stream if accepted."""
    question, ends_with_stream = chat_body.parse(body_of(request))
    log = await runner.start(question)
    if "text/event-stream" not in request.headers.get("Accept", ""):
        return JsonResponse(_started(log), status=202)
    stream = event_streams.of_log(log, ends_with_stream=ends_with_stream)
    return _stream(stream, log.inflight_id)


def _stream(frames: AsyncIterator[str], inflight_id: str) -> StreamingHttpResponse:
    headers = {
        "Cache-Control": "no-cache",
        "Connection": "keep-alive",
        "X-Accel-Buffering": "no",
        "X-Inflight-Id": inflight_id,
    }
    return StreamingHttpResponse(frames, content_type="text/event-stream", headers=headers)


def body_of(request: HttpRequest) -> bytes:
    """The body's bytes. Raises InvalidInput PAYLOAD_TOO_LARGE."""
    try:
        return request.body
    except RequestDataTooBig as error:
        raise InvalidInput("The body is too large.", code="PAYLOAD_TOO_LARGE") from error


def _started(log: RunLog) -> JSON:
    return {
        "status": "started",
        "conversationId": log.conversation_id,
        "inflightId": log.inflight_id,
        "provider": log.provider,
        "model": log.model,
    } | not_stored(log)


@require_GET
async def events(request: HttpRequest, conversation_id: str) -> HttpResponseBase:
    """`GET /conversations/<id>/events`: the events of the newest answer after Last-Event-ID.

    204 if there are no more, and if there is no answer: an EventSource then stops. An id of an
    earlier run says nothing about this one, which is sent from its beginning.
    """
    known = request.headers.get("Last-Event-ID") or request.GET.get("lastEventId", "")
    turn_id, number = sse.parse_id(known.strip())
    source = await event_streams.newest(conversation_id)
    if source is None:
        return HttpResponse(status=204)
    after = number if turn_id == event_streams.turn_id_of(source) else 0
    if after is None or event_streams.has_ended(source, after):
        return HttpResponse(status=204)
    if isinstance(source, RunLog):
        return _stream(event_streams.of_log(source, after), source.inflight_id)
    return _stream(event_streams.of_row(source), source.inflight_id)


@require_POST
async def cancel(request: HttpRequest, conversation_id: str) -> JsonResponse:
    """`POST /conversations/<id>/cancel {inflightId?}` → 202, or 404 INFLIGHT_NOT_FOUND."""
    body = Inflight.read(_json(request))
    if not await runner.cancel(conversation_id, body.get("inflightId")):
        raise NotFound(NO_INFLIGHT["message"], code=NO_INFLIGHT["code"])
    return JsonResponse({"status": "ok"}, status=202)


def _json(request: HttpRequest) -> Any:
    if not request.body:
        return {}
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise refused("The body must be valid JSON.") from error


@require_GET
async def providers(request: HttpRequest) -> JsonResponse:
    """`GET /chat/providers`: all providers, with the reasons of those that are unavailable."""
    known = registry.providers().values()
    states = zip(known, await asyncio.gather(*map(_availability, known)), strict=True)
    rows = [{"id": provider.id, "label": provider.label, **state} for provider, state in states]
    return JsonResponse({"providers": rows})


async def _availability(provider: Provider) -> dict[str, Any]:
    availability = await provider.availability()
    tools = availability.available and availability.tools_available
    wire: dict[str, Any] = {"available": availability.available, "toolsAvailable": tools}
    return wire | ({"reason": availability.reason} if availability.reason else {})


@require_GET
async def models(request: HttpRequest) -> JsonResponse:
    """`GET /chat/models?provider=`: the models; if there are none, an empty list and the reason.

    An unknown provider means lmstudio, which answers 503 if it is unavailable (contract.md §2.1).
    """
    body = request.GET.get("provider", "")
    known = registry.providers()
    provider = known.get(body) or known[chat_body.DEFAULT_PROVIDER]
    try:
        with timed_entry(
            logger, "chat models", provider=provider.id, baseUrl=await provider.origin()
        ) as facts:
            availability = await _availability(provider)
            offered = await provider.models() if availability["available"] else ()
            facts["count"] = len(offered)
            if not availability["available"]:
                facts["code"] = "PROVIDER_UNAVAILABLE"
    except Unavailable as error:
        return _no_models(provider.id, error.message)
    if provider.id == chat_body.DEFAULT_PROVIDER and not availability["available"]:
        return _no_models(provider.id, availability.get("reason", ""))
    rows = [{"key": m.key, "displayName": m.display_name, "type": m.type} for m in offered]
    return JsonResponse({"provider": provider.id, **availability, "models": rows})


def _no_models(provider: str, reason: str) -> JsonResponse:
    body = {
        "error": f"{provider} unavailable",
        "provider": provider,
        "available": False,
        "toolsAvailable": False,
        "reason": reason,
        "models": [],
    }
    return JsonResponse(body, status=503)
