"""The error bodies of `POST /logs` (contract.md §9)."""

from typing import Any

from apps.core.error_map import ErrorBodies, register_envelope, register_route_status
from apps.core.errors import CodeinfoError

logs = ErrorBodies()


@logs.register("PAYLOAD_TOO_LARGE")
def _too_large(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "payload too large"}


@logs.register("VALIDATION_FAILED")
def _invalid(error: CodeinfoError) -> dict[str, Any]:
    return {"error": "invalid log entry"}


register_envelope("/logs", logs)
register_envelope("/ui/logs", logs)
# These routes limit the body to LOG_MAX_CLIENT_BYTES.
register_route_status("/logs", "PAYLOAD_TOO_LARGE", 400)
register_route_status("/ui/logs/entries", "PAYLOAD_TOO_LARGE", 400)
