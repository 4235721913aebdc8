"""The HTTP status of a failure of the vector store."""

from apps.core.error_map import register_status

register_status("CHROMA_UNAVAILABLE", 502)
