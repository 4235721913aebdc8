"""The errors that codeinfo raises.

    CodeinfoError
    ├── InvalidInput     the request is wrong (400, 413, 415)
    ├── NotFound         the object does not exist (404)
    ├── Conflict         the request is valid, but not in the present state (409, 410, 429)
    └── Unavailable      a dependency does not work (502, 503); may be retryable

Each has a stable `code` (docs/contract.md), a `message` for people, and `details`: further fields
of the response, with their wire names. `error_map` maps an error to a response.
"""

from collections.abc import Mapping
from typing import Any


class CodeinfoError(Exception):
    """Base class. Not raised itself."""

    code = "ERROR"

    def __init__(
        self, message: str, *, code: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details: dict[str, Any] = dict(details or {})


class InvalidInput(CodeinfoError):
    """The request is wrong; repeating it does not help."""

    code = "VALIDATION_FAILED"


class NotFound(CodeinfoError):
    """The object does not exist."""

    code = "NOT_FOUND"


class Conflict(CodeinfoError):
    """The request cannot be done in the present state."""

    code = "CONFLICT"


class Unavailable(CodeinfoError):
    """A dependency does not work. `retryable`: the same call may succeed later."""

    code = "UNAVAILABLE"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        retryable: bool = True,
    ) -> None:
        super().__init__(message, code=code, details=details)
        self.retryable = retryable


def reason_of(error: Exception) -> str:
    """Return the message of an error for people: of the file system, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error)
