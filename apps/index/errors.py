"""The HTTP statuses of failures of the vector store, and of the embedding servers."""

from apps.core.error_map import register_status

register_status("CHROMA_UNAVAILABLE", 502)
register_status("EMBEDDER_UNAVAILABLE", 502)
