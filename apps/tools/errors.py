"""The errors of the tools, and their bodies in answers of the routes (contract.md §4.2)."""

from typing import Any

from apps.core.error_map import ErrorBodies, register_envelope
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound, Unavailable


def _named(error: CodeinfoError) -> dict[str, Any]:
    """The code as `error`, the message and the details."""
    return {"error": error.code, "message": error.message, **error.details}


symbols = ErrorBodies(_named)
tools = ErrorBodies(symbols)


@symbols.register("VALIDATION_FAILED")
def _invalid(error: CodeinfoError) -> dict[str, Any]:
    """The code as `error`, and a list of all problems."""
    return {"error": error.code, "details": error.details.get("details", [error.message])}


@tools.register("REPO_NOT_FOUND")
def _repository_not_found(error: CodeinfoError) -> dict[str, Any]:
    return {"error": error.code}


register_envelope("/tools/", tools)
register_envelope("/tools/symbol-", symbols)
register_envelope("/tools/file-", symbols)


# --- an example of each that a tool may raise, for the description of the API ---------------------

INVALID = InvalidInput("Wrong.", details={"details": ["query is required"]})
BAD_PATTERN = InvalidInput("Wrong pattern.", code="BAD_PATTERN", details={"details": [""]})
OTHER_CURSOR = InvalidInput("Not of this call.", code="CURSOR_INVALID", details={"details": [""]})
EXPIRED = Conflict("What is listed has changed.", code="CURSOR_EXPIRED")
NO_REPOSITORY = NotFound(
    "There is no such repository.", code="REPO_NOT_FOUND", details={"repo": ""}
)
NO_FILE = NotFound("There is no such file.", code="FILE_NOT_FOUND")
NO_LINES = NotFound("The file has no such lines.", code="LINES_NOT_FOUND")
NOT_INGESTED = Conflict("Nothing is ingested.", code="INGEST_REQUIRED")
NO_TEXTS = Unavailable("The text store cannot be read.", code="TEXTS_UNAVAILABLE")
TEXT_LOST = Unavailable("The text is lost.", code="TEXT_LOST")
NO_CHROMA = Unavailable("Chroma does not answer.", code="CHROMA_UNAVAILABLE")
NO_EMBEDDER = Unavailable(
    "The embedding server does not answer.",
    code="EMBEDDER_UNAVAILABLE",
    details={"modelId": ""},
)
NO_MODEL = Unavailable(
    "The embedding server does not have the model.",
    code="EMBED_MODEL_MISSING",
    details={"modelId": ""},
    retryable=False,
)
NO_HISTORY = NotFound("It is not in a git repository.", code="NO_HISTORY")
NO_COMMIT = NotFound("No commit has this name.", code="REF_NOT_FOUND")
NO_SYMBOL = NotFound("Nothing has this name.", code="SYMBOL_NOT_FOUND")
FORBIDDEN = InvalidInput("Left out of the ingest.", code="FORBIDDEN_PATH")
NO_GIT = Unavailable("git is not installed.", code="GIT_MISSING", retryable=False)
GIT_REFUSED = Unavailable("The git repository is broken.", code="GIT_FAILED", retryable=False)
TOO_SLOW = Unavailable("It took more than 10 seconds.", code="TIMED_OUT", retryable=False)
BUSY = Unavailable("Too much is computed.", code="OVERLOADED", details={"retryAfter": 5})

OF_PAGES = (OTHER_CURSOR, EXPIRED)
OF_SYMBOLS = (INVALID, NO_REPOSITORY, NOT_INGESTED)
OF_SEARCHES = (*OF_SYMBOLS, NO_MODEL, NO_EMBEDDER, NO_CHROMA)
OF_TEXTS = (INVALID, NO_REPOSITORY, NOT_INGESTED, NO_TEXTS, BUSY)
OF_HISTORY = (FORBIDDEN, NO_HISTORY, NO_COMMIT, NO_SYMBOL, NO_GIT, GIT_REFUSED, TOO_SLOW, BUSY)
