"""The error bodies of the conversation routes (contract.md §1.2) and of the chat stream (§2.4)."""

from typing import Any

from django.http import HttpRequest

from apps.core.error_map import (
    ErrorBodies,
    plain,
    register_envelope,
    register_route_status,
    register_status,
)
from apps.core.errors import CodeinfoError

conversations = ErrorBodies()


@conversations.register("validation_error")
def _invalid(error: CodeinfoError) -> dict[str, Any]:
    return {"error": error.code, "details": error.details.get("details", error.message)}


@conversations.register("SERVER_ERROR")
def _server_error(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "server_error", "message": error.message}


@conversations.register("NOT_FOUND")
def _not_found(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "not_found"}


@conversations.register("CONVERSATION_ARCHIVED")
def _archived(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "archived"}


# Errors of POST /chat before the event stream opens.
chat_stream = ErrorBodies()
chat_stream.register("CONVERSATION_ARCHIVED")(_archived)


@chat_stream.register("PROVIDER_UNAVAILABLE")
def _provider_unavailable(error: CodeinfoError) -> dict[str, Any]:
    provider = error.details.get("provider", "provider")
    return {"error": f"{provider} unavailable", "reason": error.message}


@chat_stream.register("PAYLOAD_TOO_LARGE")
def _too_large(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "payload too large"}


@chat_stream.register("VALIDATION_FAILED")
def _invalid_request(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "invalid request", "message": error.message}


@chat_stream.register("UNSUPPORTED_PROVIDER")
def _unsupported_provider(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "unsupported provider", "message": error.message}


def _is_chat_stream(request: HttpRequest) -> bool:
    return request.path == "/chat" and "text/event-stream" in request.headers.get("Accept", "")


register_envelope("/conversations", conversations)
register_envelope("/conversations/bulk/", plain)
register_envelope("/chat", chat_stream, when=_is_chat_stream)
register_status("CONVERSATION_ARCHIVED", 410)
# contract.md §2.2: this route has a smaller body limit.
register_route_status("/chat", "PAYLOAD_TOO_LARGE", 400)
