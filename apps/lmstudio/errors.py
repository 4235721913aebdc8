"""The one error of this room."""

from apps.core.errors import Unavailable


def unavailable(message: str, *, retryable: bool = True) -> Unavailable:
    """LM Studio cannot be used; `message` says why, in a sentence for a person."""
    return Unavailable(message, code="LMSTUDIO_UNAVAILABLE", retryable=retryable)
