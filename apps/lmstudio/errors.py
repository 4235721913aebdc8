"""Errors of LM Studio, and the bodies of its routes (contract.md §5.8)."""

from typing import Any

from apps.core.error_map import register_envelope, register_status
from apps.core.errors import CodeinfoError, Unavailable


def unavailable(message: str, *, retryable: bool = True) -> Unavailable:
    """Return the error LMSTUDIO_UNAVAILABLE; `message` is a sentence for the user."""
    return Unavailable(message, code="LMSTUDIO_UNAVAILABLE", retryable=retryable)


def lmstudio(error: CodeinfoError) -> dict[str, Any]:
    """Return the body `{status, baseUrl, error}`: the address and a sentence."""
    invalid = error.code == "INVALID_BASE_URL"
    message = "Invalid baseUrl" if invalid else error.message
    return {"status": "error", "baseUrl": error.details.get("baseUrl"), "error": message}


register_envelope("/lmstudio/", lmstudio)
register_status("LMSTUDIO_UNAVAILABLE", 502)
