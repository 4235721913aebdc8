"""The room that writes the index."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    name = "apps.ingest"
    verbose_name = "Ingest"
