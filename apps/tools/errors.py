"""The error bodies of the routes of the tools (contract.md §4.2)."""

from typing import Any

from apps.core.error_map import ErrorBodies, register_envelope
from apps.core.errors import CodeinfoError


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
