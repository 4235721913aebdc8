"""Limits the body of a request while it arrives."""

from typing import Any


def at_most(receive: Any, limit: int) -> Any:
    """Return a `receive` of ASGI that ends the body after more than `limit` bytes. The view sees
    that it is larger, and what follows is dropped."""
    read, is_over = 0, False

    async def limited() -> Any:
        nonlocal read, is_over
        message = await receive()
        while is_over and message["type"] == "http.request":
            message = await receive()
        read += len(message.get("body", b""))
        if read > limit and message["type"] == "http.request":
            is_over = True
            return {**message, "more_body": False}
        return message

    return limited
