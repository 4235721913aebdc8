"""The error bodies of `POST /logs` (contract.md §9)."""

from apps.core.error_map import ErrorBodies, register_envelope, register_route_status

logs = ErrorBodies()
logs.words("payload too large", "PAYLOAD_TOO_LARGE")
logs.words("invalid log entry", "VALIDATION_FAILED")

register_envelope("/logs", logs)
register_envelope("/ui/logs", logs)
# These routes limit the body to LOG_MAX_CLIENT_BYTES.
register_route_status("/logs", "PAYLOAD_TOO_LARGE", 400)
register_route_status("/ui/logs/entries", "PAYLOAD_TOO_LARGE", 400)
