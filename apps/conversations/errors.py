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


conversations.words("server_error", "SERVER_ERROR", message="message")
conversations.words("not_found", "NOT_FOUND")
conversations.words("archived", "CONVERSATION_ARCHIVED")

# Errors of POST /chat before the event stream opens.
chat_stream = ErrorBodies()
chat_stream.words("archived", "CONVERSATION_ARCHIVED")
chat_stream.words("{provider} unavailable", "PROVIDER_UNAVAILABLE", reason="message")
chat_stream.words("payload too large", "PAYLOAD_TOO_LARGE")
chat_stream.words("invalid request", "VALIDATION_FAILED", message="message")
chat_stream.words("unsupported provider", "UNSUPPORTED_PROVIDER", message="message")


def _is_chat_stream(request: HttpRequest) -> bool:
    return request.path == "/chat" and "text/event-stream" in request.headers.get("Accept", "")


register_envelope("/conversations", conversations)
register_envelope("/conversations/bulk/", plain)
register_envelope("/chat", chat_stream, when=_is_chat_stream)
register_status("CONVERSATION_ARCHIVED", 410)
# contract.md §2.2: this route has a smaller body limit.
register_route_status("/chat", "PAYLOAD_TOO_LARGE", 400)
