"""The error answers of operations, made by the product itself: `apps.core.error_map`."""

import json
from collections.abc import Iterable, Sequence

from django.http import HttpRequest

from apps.core.error_map import respond
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound, Unavailable
from apps.core.security.access import BAD_HOST as HOST_REFUSED
from apps.core.types import JSON
from apps.core.values.json_schema import list_schema

MESSAGE = "A sentence that says what is wrong."
# Stands for a value of the moment in the word of an error, such as "<provider> unavailable".
PLACEHOLDER = "<"
# Members that hold a code or a word.
FIXED = ("status", "code", "error")
WORD: JSON = {"type": "string", "enum": []}

ALL = (
    InvalidInput("This host is not served, or pages of this origin may not call codeinfo.",
                 code="FORBIDDEN"),
    Unavailable("The database is busy or away.", code="DATABASE_UNAVAILABLE"),
    Unavailable("The disk of the database is full.", code="DISK_FULL", retryable=False),
)  # fmt: skip
GUARDED = (
    InvalidInput("A bearer token or a login is needed.", code="UNAUTHORIZED"),
    Conflict("Too many requests.", code="RATE_LIMITED", details={"retryAfter": 1}),
)
WITH_BODY = (
    InvalidInput(MESSAGE),
    InvalidInput("The body is too large.", code="PAYLOAD_TOO_LARGE"),
    InvalidInput("The body must be application/json.", code="UNSUPPORTED_MEDIA_TYPE"),
)
FAILED = Unavailable(
    "Something went wrong. It is in the log of the server.", code="SERVER_ERROR", retryable=False
)
BAD_HOST = {"status": "error", "code": "FORBIDDEN", "message": HOST_REFUSED}
DESCRIPTIONS = {
    400: "The request is wrong.",
    401: "Credentials are missing or wrong.",
    403: "Not allowed.",
    404: "It does not exist.",
    409: "Not possible in the present state.",
    410: "The conversation is archived.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    429: "Too many requests, or too much work waits.",
    500: "A failure that was not foreseen. The log has the reason.",
    502: "A server that codeinfo needs does not answer.",
    503: "A part of codeinfo is not available.",
}


def error_answers(
    method: str, path: str, errors: Iterable[CodeinfoError], *, is_open: bool = False
) -> JSON:
    """The responses for the errors of an operation and those of all operations, by status."""
    known = [*errors, *ALL, *(() if is_open else GUARDED)]
    if method == "POST":
        known += WITH_BODY
    if "{" in path:
        known.append(NotFound("There is nothing at this address."))
    answers: dict[int, dict[str, JSON]] = {400: {"FORBIDDEN": BAD_HOST}}
    for error in known:
        for status, body in _bodies(method, path, error):
            _add(answers.setdefault(status, {}), error.code, body)
    for _, body in _bodies(method, path, FAILED):
        _add(answers.setdefault(500, {}), FAILED.code, body)
    return {str(status): _answer(status, answers[status]) for status in sorted(answers)}


def _bodies(method: str, path: str, error: CodeinfoError) -> list[tuple[int, JSON]]:
    """The statuses and bodies of an error: one, or two if those of an event stream differ."""
    pairs: list[tuple[int, JSON]] = []
    for accept in ("application/json", "text/event-stream"):
        request = HttpRequest()
        request.method, request.path = method, path
        request.META["HTTP_ACCEPT"] = accept
        response = respond(error, request)
        pair = response.status_code, json.loads(response.content)
        if pair not in pairs:
            pairs.append(pair)
    return pairs


def _add(examples: dict[str, JSON], code: str, body: JSON) -> None:
    if body not in examples.values():
        name, count = code, 1
        while name in examples:
            count += 1
            name = f"{code}-{count}"
        examples[name] = body


def _answer(status: int, examples: dict[str, JSON]) -> JSON:
    shapes = _shapes(examples.values())
    schema = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    shown = {name: {"value": body} for name, body in examples.items()}
    return {
        "description": DESCRIPTIONS[status],
        "content": {"application/json": {"schema": schema, "examples": shown}},
    }


def _shapes(bodies: Iterable[JSON]) -> list[JSON]:
    """The schemas of bodies: one for all that have the same members."""
    alike: dict[str, list[JSON]] = {}
    for body in bodies:
        kinds = {name: _kind(name, value) for name, value in body.items()}
        alike.setdefault(json.dumps(kinds), []).append(body)
    return [_shape(json.loads(kinds), group) for kinds, group in alike.items()]


def _shape(kinds: JSON, bodies: Sequence[JSON]) -> JSON:
    properties = {
        name: {"enum": sorted({body[name] for body in bodies})} if kind == WORD else kind
        for name, kind in kinds.items()
    }
    return {"type": "object", "properties": properties, "required": list(kinds)}


def _kind(name: str, value: object) -> JSON:
    """The schema of a member. Codes and words are fixed; messages and details are not."""
    match value:
        case str() if name in FIXED and PLACEHOLDER not in value and not value.endswith("."):
            return WORD
        case str():
            return {"type": "string"}
        case int():
            return {"type": "integer"}
        case list():
            return list_schema({})
        case dict():
            return {"type": "object"}
    return {}
