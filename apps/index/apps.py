"""The room of the index and its truth: rows, vectors, words."""

from importlib import import_module

from django.apps import AppConfig


class IndexConfig(AppConfig):
    name = "apps.index"
    # Its tables and migrations were made under this label, before the room had its name.
    label = "ingest"
    verbose_name = "Index"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.embedding.errors")
        import_module("apps.index.errors")
