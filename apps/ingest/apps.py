"""The room that writes the index."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    name = "apps.ingest"
    # "ingest" is the label of the index, which keeps its tables (`apps.index.apps`).
    label = "ingest_runs"
    verbose_name = "Ingest"
