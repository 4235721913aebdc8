"""The status of an embedding server's failure."""

from apps.core.error_map import register_status

register_status("EMBEDDER_UNAVAILABLE", 502)
