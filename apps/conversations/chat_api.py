"""`POST /chat` in both forms, the providers and models, and Stop (docs/contract.md §2)."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET, require_POST

from apps.agents.providers import registry
from apps.agents.providers.base import Provider
from apps.conversations import chat_body, runner
from apps.conversations.renderers import sse
from apps.conversations.renderers.json import NO_INFLIGHT
from apps.conversations.serializers import Inflight, refused
from apps.conversations.stream import RunLog
from apps.core.errors import InvalidInput, NotFound, Unavailable
from apps.logs.entries import timed_entry

logger = logging.getLogger("codeinfo.conversations")

HEARTBEAT_SECONDS = 15.0


@require_POST
async def chat(request: HttpRequest) -> HttpResponseBase:
    """`POST /chat`: start a run. Returns 202 with its ids, or an event stream if accepted."""
    question, ends_with_stream = chat_body.parse(body_of(request))
    log = await runner.start(question)
    if "text/event-stream" not in request.headers.get("Accept", ""):
        return JsonResponse(_started(log), status=202)
    headers = {
        "Cache-Control": "no-cache",
        "Connection": "keep-alive",
        "X-Accel-Buffering": "no",
        "X-Inflight-Id": log.inflight_id,
    }
    stream = event_stream(log, ends_with_stream=ends_with_stream)
    return StreamingHttpResponse(stream, content_type="text/event-stream", headers=headers)


def body_of(request: HttpRequest) -> bytes:
    """The body's bytes. Raises InvalidInput PAYLOAD_TOO_LARGE."""
    try:
        return request.body
    except RequestDataTooBig as error:
        raise InvalidInput("The body is too large.", code="PAYLOAD_TOO_LARGE") from error


def _started(log: RunLog) -> dict[str, str]:
    return {
        "status": "started",
        "conversationId": log.conversation_id,
        "inflightId": log.inflight_id,
        "provider": log.provider,
        "model": log.model,
    }


async def event_stream(log: RunLog, *, ends_with_stream: bool) -> AsyncIterator[str]:
    """The frames of a run, with a heartbeat first and after HEARTBEAT_SECONDS without events."""
    after = 0
    yield sse.HEARTBEAT
    try:
        while not (log.finished and after == log.seq):
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await log.wait(after)
            except TimeoutError:
                yield sse.HEARTBEAT
            new = log.envelopes[after:]
            after += len(new)
            if frames := "".join(sse.frames((envelope.event for envelope in new), log.transcript)):
                yield frames
    finally:
        if after < log.seq or not log.finished:
            _on_disconnect(log, ends_with_stream)


def _on_disconnect(log: RunLog, ends_with_stream: bool) -> None:
    context = {
        "reason": "client_disconnect",
        "conversationId": log.conversation_id,
        "inflightId": log.inflight_id,
        "stopped": ends_with_stream,
    }
    logger.info("chat stream left", extra={"context": context})
    if ends_with_stream:
        runner.stop(log)


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
    return JsonResponse({"providers": await asyncio.gather(*map(_described, known))})


async def _described(provider: Provider) -> dict[str, Any]:
    return {"id": provider.id, "label": provider.label, **await _availability(provider)}


async def _availability(provider: Provider) -> dict[str, Any]:
    found = await provider.availability()
    tools = found.available and found.tools_available
    wire: dict[str, Any] = {"available": found.available, "toolsAvailable": tools}
    return wire | ({"reason": found.reason} if found.reason else {})


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
