"""The room that writes the index."""

from importlib import import_module

from django.apps import AppConfig


class IngestConfig(AppConfig):
    name = "apps.ingest"
    # "ingest" is the label of the index, which keeps its tables (`apps.index.apps`).
    label = "ingest_runs"
    verbose_name = "Ingest"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.ingest.errors")
