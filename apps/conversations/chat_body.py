"""Parse the body of `POST /chat`, in the order of contract.md §2.2; the first error wins."""

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.http import QueryDict

from apps.agents.providers.codex.flags import FLAGS
from apps.conversations import scope
from apps.conversations.models import VALID_ID
from apps.conversations.types import StartTurn
from apps.core.config import PROVIDERS, config
from apps.core.errors import InvalidInput
from apps.core.security.access import check_length
from apps.core.values.surrogates import storable
from apps.index.types import Area
from apps.retrieval.query import read_areas, write_area

logger = logging.getLogger("codeinfo.conversations")

DEFAULT_PROVIDER = "lmstudio"


def parse(raw: bytes) -> tuple[StartTurn, bool]:
    """The request, and whether closing its event stream stops the run (`cancelOnDisconnect`).

    Raises InvalidInput with the code and message of the first broken rule.
    """
    check_length(len(raw), config().log_max_client_bytes)
    body = object_of(raw)
    if "messages" in body:
        raise InvalidInput("conversationId required; history is loaded server-side")
    model = required_text(body, "model")
    message = required_text(body, "message")
    conversation_id = required_text(body, "conversationId")
    check_id("conversationId", conversation_id)
    if len(model) > 255:
        raise InvalidInput("model must be at most 255 characters")
    provider = _provider(body)
    thread = body.get("threadId")
    if thread is not None and not isinstance(thread, str):
        raise InvalidInput("threadId must be a string")
    inflight_id = _inflight_id(body)
    flags = _flags(body, provider)
    areas = _areas(body)
    if areas is not None:
        flags[scope.SCOPE] = list(map(write_area, areas))
    if provider == "codex" and thread:
        flags["threadId"] = thread
    parent = _parent(body)
    question = StartTurn(
        conversation_id=conversation_id,
        message=message,
        provider=provider,
        model=model,
        inflight_id=inflight_id,
        flags=flags,
        areas=areas,
        parent=parent,
    )
    return question, body.get("cancelOnDisconnect") is True


def object_of(raw: bytes) -> Mapping[str, Any]:
    """The JSON object in a body. Raises InvalidInput."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InvalidInput("request body must be an object")
    return body


def required_text(body: Mapping[str, Any], name: str) -> str:
    """A string that is not blank, with NUL and lone surrogates replaced. Raises InvalidInput."""
    value = body.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is required")
    return storable(value)


def check_id(name: str, value: str) -> None:
    """Raise InvalidInput if `value` is not a conversation or run id."""
    if not VALID_ID.match(value):
        raise InvalidInput(f"{name} must be 1-128 characters of A-Z a-z 0-9 . _ : -")


def _provider(body: Mapping[str, Any]) -> str:
    value = body.get("provider")
    if not isinstance(value, str) or not value:
        return DEFAULT_PROVIDER
    if value not in PROVIDERS:
        known = ", ".join(f'"{name}"' for name in PROVIDERS)
        raise InvalidInput(f"provider must be one of {known}", code="UNSUPPORTED_PROVIDER")
    return value


def _inflight_id(body: Mapping[str, Any]) -> str | None:
    if "inflightId" not in body:
        return None
    value = body["inflightId"]
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput("inflightId must be a non-empty string")
    check_id("inflightId", value)
    return value


def _areas(body: Mapping[str, Any]) -> tuple[Area, ...] | None:
    """What the question is limited to; None: as the conversation is."""
    texts = body.get("scope")
    if texts is None:
        return None
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise InvalidInput("scope must be a list of non-empty strings")
    return read_areas(texts)


def _parent(body: Mapping[str, Any]) -> str | None:
    """`StartTurn.parent`: a missing field is None, and null is ""."""
    if "parentTurnId" not in body:
        return None
    value = body["parentTurnId"]
    if value is None:
        return ""
    if not isinstance(value, str) or not value:
        raise InvalidInput("parentTurnId must be the id of a turn, or null")
    return value


def placed(question: StartTurn, form: QueryDict) -> StartTurn:
    """The question of a page's form: after the turn `parent`, or that of the turn `again`."""
    if again := form.get("again"):
        return replace(question, message="", parent=again)
    return replace(question, parent=form.get("parent"))


def _flags(body: Mapping[str, Any], provider: str) -> dict[str, Any]:
    """The Codex flags with their defaults. For other providers they are checked and ignored."""
    flags: dict[str, Any] = {}
    for flag in FLAGS:
        value = body.get(flag.name)
        if value is not None:
            flag.check(value)
        flags[flag.name] = flag.default if value is None else value
        if value is not None and provider != "codex":
            logger.warning(
                f'{flag.name} is Codex-only and was ignored for provider "{provider}"',
                extra={"context": {"flag": flag.name, "provider": provider}},
            )
    return flags if provider == "codex" else {}
