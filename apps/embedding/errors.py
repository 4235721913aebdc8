"""The HTTP status of a failure of an embedding server."""

from apps.core.error_map import register_status

register_status("EMBEDDER_UNAVAILABLE", 502)
