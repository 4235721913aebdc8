"""One table from errors to answers: which status, and which envelope for which family of routes.

The envelopes differ because contract.md has them so (its §1.2, §2.4, §2.5, §4.2, §5); routes of
our own use `plain`. Nothing else in the project builds an error body.
"""

from collections.abc import Callable
from typing import Any

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions as drf

from apps.core import disk
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound, Unavailable

STATUS_BY_CODE = {
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "METHOD_NOT_ALLOWED": 405,
    "CONVERSATION_ARCHIVED": 410,
    "BUSY": 429,
    "RATE_LIMITED": 429,
    "CHROMA_UNAVAILABLE": 502,
    "EMBEDDER_UNAVAILABLE": 502,
    "LMSTUDIO_UNAVAILABLE": 502,
    "AGENTS_UNAVAILABLE": 500,
    "AGENT_COMMANDS_FAILED": 500,
}
STATUS_BY_KIND: dict[type[CodeinfoError], int] = {
    InvalidInput: 400,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
}

Envelope = Callable[[CodeinfoError], dict[str, Any]]


def status_of(error: CodeinfoError) -> int:
    """HTTP status: by code where the code has one of its own, else by the kind of error."""
    if error.code in STATUS_BY_CODE:
        return STATUS_BY_CODE[error.code]
    return next(STATUS_BY_KIND[kind] for kind in (*type(error).__mro__,) if kind in STATUS_BY_KIND)


def plain(error: CodeinfoError) -> dict[str, Any]:
    """{status, code, message} and the details beside them."""
    return {"status": "error", "code": error.code, "message": error.message, **error.details}


def ingest(error: CodeinfoError) -> dict[str, Any]:
    """§5.4: as `plain`; wrong input has a word of its own."""
    code = "VALIDATION" if error.code == "VALIDATION_FAILED" else error.code
    return plain(error) | {"code": code}


def tools(error: CodeinfoError) -> dict[str, Any]:
    """§4.2: the code stands under `error`; validation carries its list, others a message."""
    if error.code == "VALIDATION_FAILED":
        return {"error": error.code, "details": error.details.get("details", [error.message])}
    if error.code == "REPO_NOT_FOUND":
        return {"error": error.code}
    return {"error": error.code, "message": error.message, **error.details}


def symbols(error: CodeinfoError) -> dict[str, Any]:
    """As `tools`, but an unknown repository is told of in words, with the ids there are."""
    if error.code == "REPO_NOT_FOUND":
        return {"error": error.code, "message": error.message, **error.details}
    return tools(error)


# §1.2: the conversation routes name their errors in words of their own.
CONVERSATION_WORDS = {
    "NOT_FOUND": "not_found",
    "CONVERSATION_ARCHIVED": "archived",
}


def conversations(error: CodeinfoError) -> dict[str, Any]:
    """§1.2: `validation_error` with details, bare words, or `plain` where a code is asked for."""
    if error.code == "validation_error":
        return {"error": error.code, "details": error.details.get("details", error.message)}
    if error.code == "SERVER_ERROR":
        return {"error": "server_error", "message": error.message}
    if error.code in CONVERSATION_WORDS:
        return {"error": CONVERSATION_WORDS[error.code]}
    return plain(error)


def lmstudio(error: CodeinfoError) -> dict[str, Any]:
    """§5.8: the address that was asked, and a sentence."""
    wrong = error.code == "INVALID_BASE_URL"
    message = "Invalid baseUrl" if wrong else error.message
    return {"status": "error", "baseUrl": error.details.get("baseUrl"), "error": message}


# §7: the agents' routes have words of their own, too; those of a refused input keep its code.
AGENT_WORDS = {
    "AGENT_MISMATCH": "agent_mismatch",
    "CONVERSATION_ARCHIVED": "archived",
    "AGENTS_UNAVAILABLE": "agents_unavailable",
    "AGENT_COMMANDS_FAILED": "agent_commands_failed",
    "SERVER_ERROR": "agent_run_failed",
}
AGENT_INPUT = (
    "VALIDATION_FAILED",
    "AGENT_INVALID",
    "COMMAND_INVALID",
    "WORKING_FOLDER_INVALID",
    "WORKING_FOLDER_NOT_FOUND",
)


def agents(error: CodeinfoError) -> dict[str, Any]:
    if isinstance(error, NotFound):
        return {"error": "not_found"}
    if error.code in AGENT_WORDS:
        message = {"message": error.message} if isinstance(error, Unavailable) else {}
        return {"error": AGENT_WORDS[error.code], **message}
    if error.code == "RUN_IN_PROGRESS":
        return {"error": "conflict", "code": error.code, "message": error.message}
    if error.code == "PROVIDER_UNAVAILABLE":
        provider = error.details.get("provider", "provider")
        return {"error": f"{provider}_unavailable", "reason": error.message}
    if error.code in AGENT_INPUT:
        code = {} if error.code == "VALIDATION_FAILED" else {"code": error.code}
        return {"error": "invalid_request", "message": error.message, **code}
    return plain(error)


# §2.4: the event-stream form of POST /chat answers in words before the stream opens.
STREAM_WORDS = {
    "PAYLOAD_TOO_LARGE": "payload too large",
    "VALIDATION_FAILED": "invalid request",
    "UNSUPPORTED_PROVIDER": "unsupported provider",
    "CONVERSATION_ARCHIVED": "archived",
}


def chat_stream(error: CodeinfoError) -> dict[str, Any]:
    if error.code == "PROVIDER_UNAVAILABLE":
        provider = error.details.get("provider", "provider")
        return {"error": f"{provider} unavailable", "reason": error.message}
    if error.code not in STREAM_WORDS:
        return plain(error)
    body = {"error": STREAM_WORDS[error.code]}
    if error.code in ("VALIDATION_FAILED", "UNSUPPORTED_PROVIDER"):
        body["message"] = error.message
    return body


# §9: the words of `POST /logs`.
LOG_WORDS = {
    "PAYLOAD_TOO_LARGE": "payload too large",
    "VALIDATION_FAILED": "invalid log entry",
}


def logs(error: CodeinfoError) -> dict[str, Any]:
    return {"error": LOG_WORDS[error.code]} if error.code in LOG_WORDS else plain(error)


# First match wins; a family is the beginning of a path.
FAMILIES: tuple[tuple[str, Envelope], ...] = (
    ("/ingest/", ingest),
    ("/lmstudio/", lmstudio),
    ("/tools/symbol-", symbols),
    ("/tools/file-", symbols),
    ("/tools/", tools),
    ("/conversations/bulk/", plain),
    ("/conversations", conversations),
    ("/agents", agents),
    ("/logs", logs),
    ("/ui/logs", logs),
)


def envelope_for(request: HttpRequest) -> Envelope:
    """The envelope of the route family that a request belongs to."""
    if request.path == "/chat" and "text/event-stream" in request.headers.get("Accept", ""):
        return chat_stream
    return next((shape for start, shape in FAMILIES if request.path.startswith(start)), plain)


def respond(error: CodeinfoError, request: HttpRequest) -> HttpResponse:
    """The JSON answer to a request that ended in `error`."""
    response = JsonResponse(envelope_for(request)(error), status=_status(error, request))
    if isinstance(error, Unavailable) and error.retryable and response.status_code == 503:
        response["Retry-After"] = "2"
    if "retryAfter" in error.details:
        response["Retry-After"] = str(error.details["retryAfter"])
    return response


SMALL_BODIES = ("/chat", "/logs", "/ui/logs/entries")


def _status(error: CodeinfoError, request: HttpRequest) -> int:
    # §2.2, §9: these answer 400 to a body over their own small cap.
    if error.code == "PAYLOAD_TOO_LARGE" and request.path in SMALL_BODIES:
        return 400
    return status_of(error)


def drf_exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """REST framework's hook: our errors and its own, in our envelopes."""
    found = typed(error)
    return None if found is None else respond(found, context["request"])


def typed(error: Exception) -> CodeinfoError | None:
    """Any exception as one of ours; None: a bug."""
    match error:
        case CodeinfoError():
            return error
        case drf.APIException():
            return typed_from_drf(error)
        case OperationalError():
            if disk.is_full(error):
                return disk.full_error()
            # The database has been waited for already (its own timeout); the caller may come back.
            return Unavailable("The database is busy or away.", code="DATABASE_UNAVAILABLE")
    return None


DRF_CODES = {
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
}


def typed_from_drf(error: drf.APIException) -> CodeinfoError:
    """A framework exception as one of ours."""
    if error.status_code == 404:
        return NotFound(str(error.detail))
    code = DRF_CODES.get(error.status_code, "VALIDATION_FAILED")
    return InvalidInput(str(error.detail), code=code)
