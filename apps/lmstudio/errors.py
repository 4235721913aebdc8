"""The error bodies of the LM Studio routes (contracts.md §5.8)."""

from typing import Any

from apps.core.error_map import register_envelope, register_status
from apps.core.errors import CodeinfoError


def lmstudio(error: CodeinfoError) -> dict[str, Any]:
    """{status, baseUrl, error}: the address of the server, and a sentence."""
    invalid = error.code == "INVALID_BASE_URL"
    message = "Invalid baseUrl" if invalid else error.message
    return {"status": "error", "baseUrl": error.details.get("baseUrl"), "error": message}


register_envelope("/lmstudio/", lmstudio)
register_status("LMSTUDIO_UNAVAILABLE", 502)
