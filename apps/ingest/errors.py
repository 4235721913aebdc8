"""The error bodies of the ingest routes (contract.md §5.4)."""

from typing import Any

from apps.core.error_map import ErrorBodies, plain, register_envelope, register_status
from apps.core.errors import CodeinfoError

ingest = ErrorBodies()


@ingest.register("VALIDATION_FAILED")
def _invalid(error: CodeinfoError) -> dict[str, Any]:
    return plain(error) | {"code": "VALIDATION"}


register_envelope("/ingest/", ingest)
register_status("BUSY", 429)
register_status("SERVER_TOKEN_ONLY", 403)
