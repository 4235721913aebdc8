"""Each error code of docs/api.md has the status and the body that its routes document."""

import json
from typing import Any

import pytest
from django.test import RequestFactory

from apps.core.error_map import (
    ErrorBodies,
    plain,
    register_envelope,
    respond,
    status_of,
)
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound, Unavailable

STREAM = {"HTTP_ACCEPT": "text/event-stream"}


def invalid(code: str, **details: Any) -> InvalidInput:
    return InvalidInput("M", code=code, details=details)


def plainly(code: str) -> dict[str, str]:
    return {"status": "error", "code": code, "message": "M"}


def away(code: str, **details: Any) -> Unavailable:
    return Unavailable("M", code=code, details=details)


ARCHIVED = Conflict("M", code="CONVERSATION_ARCHIVED")
NO_PROVIDER = away("PROVIDER_UNAVAILABLE", provider="codex")
TOO_LARGE = invalid("PAYLOAD_TOO_LARGE")
VALIDATION = invalid("VALIDATION_FAILED", details=["a"])
NO_REPOSITORY = NotFound("M", code="REPO_NOT_FOUND", details={"known": ["b"]})
BODIES: list[tuple[str, CodeinfoError, int, dict[str, Any]]] = [
    ("/health", invalid("VALIDATION_FAILED"), 400, plainly("VALIDATION_FAILED")),
    ("/health", invalid("UNAUTHORIZED"), 401, plainly("UNAUTHORIZED")),
    ("/health", invalid("FORBIDDEN"), 403, plainly("FORBIDDEN")),
    ("/health", invalid("METHOD_NOT_ALLOWED"), 405, plainly("METHOD_NOT_ALLOWED")),
    ("/health", TOO_LARGE, 413, plainly("PAYLOAD_TOO_LARGE")),
    ("/health", invalid("UNSUPPORTED_MEDIA_TYPE"), 415, plainly("UNSUPPORTED_MEDIA_TYPE")),
    ("/health", invalid("RATE_LIMITED"), 429, plainly("RATE_LIMITED")),
    ("/health", away("DATABASE_UNAVAILABLE"), 503, plainly("DATABASE_UNAVAILABLE")),
    ("/ingest/start", invalid("VALIDATION_FAILED"), 400, plainly("VALIDATION")),
    ("/ingest/start", Conflict("M", code="BUSY"), 429, plainly("BUSY")),
    ("/ingest/roots/x", NotFound("M"), 404, plainly("NOT_FOUND")),
    ("/ingest/start", away("EMBEDDER_UNAVAILABLE"), 502, plainly("EMBEDDER_UNAVAILABLE")),
    (
        "/lmstudio/status",
        invalid("INVALID_BASE_URL", baseUrl="u"),
        400,
        {"status": "error", "baseUrl": "u", "error": "Invalid baseUrl"},
    ),
    (
        "/lmstudio/status",
        away("LMSTUDIO_UNAVAILABLE"),
        502,
        {"status": "error", "baseUrl": None, "error": "M"},
    ),
    ("/tools/vector-search", VALIDATION, 400, {"error": "VALIDATION_FAILED", "details": ["a"]}),
    ("/tools/vector-search", NO_REPOSITORY, 404, {"error": "REPO_NOT_FOUND"}),
    (
        "/tools/vector-search",
        away("CHROMA_UNAVAILABLE"),
        502,
        {"error": "CHROMA_UNAVAILABLE", "message": "M"},
    ),
    (
        "/tools/symbol-definitions",
        NO_REPOSITORY,
        404,
        {"error": "REPO_NOT_FOUND", "message": "M", "known": ["b"]},
    ),
    ("/tools/file-outline", VALIDATION, 400, {"error": "VALIDATION_FAILED", "details": ["a"]}),
    (
        "/conversations",
        invalid("validation_error", details=["a"]),
        400,
        {"error": "validation_error", "details": ["a"]},
    ),
    ("/conversations/x", NotFound("M"), 404, {"error": "not_found"}),
    ("/conversations/x", ARCHIVED, 410, {"error": "archived"}),
    ("/conversations/x", invalid("FORBIDDEN"), 403, plainly("FORBIDDEN")),
    ("/conversations/bulk/archive", NotFound("M"), 404, plainly("NOT_FOUND")),
    ("/chat", ARCHIVED, 410, plainly("CONVERSATION_ARCHIVED")),
    ("/chat", TOO_LARGE, 400, plainly("PAYLOAD_TOO_LARGE")),
    ("/agents", away("AGENTS_UNAVAILABLE"), 500, {"error": "agents_unavailable", "message": "M"}),
    (
        "/agents/a/commands",
        away("AGENT_COMMANDS_FAILED"),
        500,
        {"error": "agent_commands_failed", "message": "M"},
    ),
    ("/agents/a", NotFound("M", code="AGENT_NOT_FOUND"), 404, {"error": "not_found"}),
    ("/agents/a/run", ARCHIVED, 410, {"error": "archived"}),
    ("/agents/a/run", invalid("AGENT_MISMATCH"), 400, {"error": "agent_mismatch"}),
    (
        "/agents/a/run",
        Conflict("M", code="RUN_IN_PROGRESS"),
        409,
        {"error": "conflict", "code": "RUN_IN_PROGRESS", "message": "M"},
    ),
    ("/agents/a/run", NO_PROVIDER, 503, {"error": "codex_unavailable", "reason": "M"}),
    ("/agents/a/run", VALIDATION, 400, {"error": "invalid_request", "message": "M"}),
    *(
        (
            "/agents/a/run",
            invalid(code),
            400,
            {"error": "invalid_request", "message": "M"} | {"code": code},
        )
        for code in (
            "AGENT_INVALID",
            "COMMAND_INVALID",
            "WORKING_FOLDER_INVALID",
            "WORKING_FOLDER_NOT_FOUND",
        )
    ),
    ("/logs", TOO_LARGE, 400, {"error": "payload too large"}),
    ("/ui/logs/entries", TOO_LARGE, 400, {"error": "payload too large"}),
    ("/logs", VALIDATION, 400, {"error": "invalid log entry"}),
    ("/logs", invalid("INVALID_QUERY"), 400, plainly("INVALID_QUERY")),
]
STREAM_BODIES: list[tuple[CodeinfoError, int, dict[str, Any]]] = [
    (TOO_LARGE, 400, {"error": "payload too large"}),
    (VALIDATION, 400, {"error": "invalid request", "message": "M"}),
    (invalid("UNSUPPORTED_PROVIDER"), 400, {"error": "unsupported provider", "message": "M"}),
    (ARCHIVED, 410, {"error": "archived"}),
    (NO_PROVIDER, 503, {"error": "codex unavailable", "reason": "M"}),
    (Conflict("M", code="RUN_IN_PROGRESS"), 409, plainly("RUN_IN_PROGRESS")),
]


@pytest.mark.parametrize(("path", "error", "status", "body"), BODIES)
def test_an_error_has_the_status_and_the_body_of_its_route(
    path: str, error: CodeinfoError, status: int, body: dict[str, Any]
) -> None:
    response = respond(error, RequestFactory().get(path))
    assert (response.status_code, json.loads(response.content)) == (status, body)


@pytest.mark.parametrize(("error", "status", "body"), STREAM_BODIES)
def test_the_chat_stream_has_other_error_bodies(
    error: CodeinfoError, status: int, body: dict[str, Any]
) -> None:
    response = respond(error, RequestFactory().get("/chat", **STREAM))
    assert (response.status_code, json.loads(response.content)) == (status, body)


def test_a_body_is_found_by_code_then_by_the_nearest_class() -> None:
    class Missing(NotFound):
        code = "MISSING"

    bodies = ErrorBodies()
    bodies.register(CodeinfoError)(lambda error: {"by": "base"})
    bodies.register(NotFound)(lambda error: {"by": "class"})
    assert (bodies(Missing("M")), bodies(Conflict("M"))) == ({"by": "class"}, {"by": "base"})
    bodies.register("MISSING")(lambda error: {"by": "code"})
    assert bodies(Missing("M")) == {"by": "code"}
    assert status_of(Missing("M")) == 404


def test_the_longest_prefix_decides_in_whatever_order_apps_register(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("apps.core.error_map.envelopes", {})
    register_envelope("/a/b", lambda error: {"prefix": "/a/b"})
    register_envelope("/a", plain)
    response = respond(NotFound("M"), RequestFactory().get("/a/b/c"))
    assert json.loads(response.content) == {"prefix": "/a/b"}
