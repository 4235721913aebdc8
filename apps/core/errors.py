"""Every error this product raises on purpose.

    CodeinfoError
    ├── InvalidInput     the caller sent something that cannot be right (400, 413, 415)
    ├── NotFound         the thing named does not exist (404)
    ├── Conflict         right in itself, but not now (409, 410, 429)
    └── Unavailable      a part we depend on does not answer (502, 503); may be retryable

Each carries a stable `code` (a wire name of contract.md), a sentence for a person, and `details`:
the few facts the caller needs, already in wire names. `error_map` turns an error into an answer.
"""

from collections.abc import Mapping
from typing import Any


class CodeinfoError(Exception):
    """Base of all; never raised itself."""

    code = "ERROR"

    def __init__(
        self, message: str, *, code: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details: dict[str, Any] = dict(details or {})


class InvalidInput(CodeinfoError):
    """The input is wrong and will stay wrong."""

    code = "VALIDATION_FAILED"


class NotFound(CodeinfoError):
    """What was named is not there."""

    code = "NOT_FOUND"


class Conflict(CodeinfoError):
    """Refused because of the present state."""

    code = "CONFLICT"


class Unavailable(CodeinfoError):
    """A part we depend on is away. `retryable` says whether the same call may work later."""

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
