"""The registry that maps errors to HTTP responses.

Each app registers the statuses and envelopes that it owns, in its `errors` module, which
`apps/site/apps.py` imports. A status or a body is found by the error's code, then by its class
along the MRO, as Starlette finds exception handlers. The envelope is chosen by the longest
registered beginning of the path; other routes use `plain`. docs/api.md lists the envelopes.
"""

import errno
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.db import DatabaseError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions as drf

from apps.core.data.sqlite_files import is_broken
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound, Unavailable
from apps.core.system import disk

T = TypeVar("T")
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)
# An error code, or a class of errors.
Key = str | type[CodeinfoError]
Envelope = Callable[[CodeinfoError], dict[str, Any]]
Condition = Callable[[HttpRequest], bool]

_statuses: dict[Key, int] = {
    CodeinfoError: 500,
    InvalidInput: 400,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "METHOD_NOT_ALLOWED": 405,
    "RATE_LIMITED": 429,
}
# The codes for the statuses of REST framework's exceptions.
_codes = {status: key for key, status in _statuses.items() if isinstance(key, str)}
_route_statuses: dict[tuple[str, str], int] = {}
envelopes: dict[str, tuple[Envelope, Condition | None]] = {}


def register_status(key: Key, status: int) -> None:
    """Use `status` for errors with this code or class."""
    _statuses[key] = status


def register_route_status(path: str, code: str, status: int) -> None:
    """Use `status` for errors with this code at exactly this path."""
    _route_statuses[path, code] = status


def register_envelope(prefix: str, envelope: Envelope, *, when: Condition | None = None) -> None:
    """Use `envelope` for paths that start with `prefix`, and requests for which `when` is true."""
    envelopes[prefix] = envelope, when


def plain(error: CodeinfoError) -> dict[str, Any]:
    """Return {status, code, message} and the details."""
    return {"status": "error", "code": error.code, "message": error.message, **error.details}


class ErrorBodies:
    """An envelope: the response body of each error, for a group of routes."""

    def __init__(self, default: Envelope = plain) -> None:
        self._default = default
        self._bodies: dict[Key, Envelope] = {}

    def register(self, *keys: Key) -> Callable[[Envelope], Envelope]:
        """Decorate the function that makes the body of errors with these codes or classes."""

        def add(body: Envelope) -> Envelope:
            self._bodies.update(dict.fromkeys(keys, body))
            return body

        return add

    def words(self, word: str, *keys: Key, **members: str) -> None:
        """Use the body `{"error": word}` for errors with these codes or classes.

        word: may name the provider of the details, as `{provider}`
        members: further members of the body → the attribute of the error that each has
        """

        @self.register(*keys)
        def _(error: CodeinfoError) -> dict[str, Any]:
            named = word.format(provider=error.details.get("provider", "provider"))
            return {"error": named} | {name: getattr(error, of) for name, of in members.items()}

    def __call__(self, error: CodeinfoError) -> dict[str, Any]:
        return (_lookup(self._bodies, error) or self._default)(error)


def _lookup(table: Mapping[Key, T], error: CodeinfoError) -> T | None:
    keys: tuple[Any, ...] = (error.code, *type(error).__mro__)
    return next((table[key] for key in keys if key in table), None)


def status_of(error: CodeinfoError) -> int:
    """Return the HTTP status: by code if the code is registered, else by class."""
    return _lookup(_statuses, error) or 500


def envelope_for(request: HttpRequest) -> Envelope:
    """Return the envelope for the route of a request."""
    matches = [
        (len(prefix), envelope)
        for prefix, (envelope, when) in envelopes.items()
        if request.path.startswith(prefix) and (when is None or when(request))
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else plain


def respond(error: CodeinfoError, request: HttpRequest) -> HttpResponse:
    """Return the JSON response for `error`."""
    status = _route_statuses.get((request.path, error.code)) or status_of(error)
    response = JsonResponse(envelope_for(request)(error), status=status)
    if isinstance(error, Unavailable) and error.retryable and status == 503:
        response["Retry-After"] = "2"
    if "retryAfter" in error.details:
        response["Retry-After"] = str(error.details["retryAfter"])
    return response


def drf_exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """REST framework's hook. Called when a view raises. None: the error is a bug."""
    failure = typed(error)
    return None if failure is None else respond(failure, context["request"])


def typed(error: Exception) -> CodeinfoError | None:
    """Return the CodeinfoError for an exception; None if it is a bug."""
    match error:
        case CodeinfoError():
            return error
        case drf.APIException():
            if error.status_code == 404:
                return NotFound(str(error.detail))
            code = _codes.get(error.status_code, "VALIDATION_FAILED")
            return InvalidInput(str(error.detail), code=code)
        case OperationalError():
            if disk.is_full(error):
                return disk.full_error()
            # The driver has already waited for its timeout.
            return Unavailable("The database is busy or away.", code="DATABASE_UNAVAILABLE")
        case DatabaseError() if is_broken(error.__cause__):
            return Unavailable(
                "The database is damaged: /health says what to do.",
                code="DATABASE_UNAVAILABLE",
                retryable=False,
            )
        case OSError() if error.errno in TOO_MANY_FILES:
            return Unavailable("Too many files are open.", code="OVERLOADED")
    return None
