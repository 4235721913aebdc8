"""Writes the index: discovery, runs, verification, and the ingest page."""

from importlib import import_module

from django.apps import AppConfig


class IngestConfig(AppConfig):
    name = "apps.ingest"
    verbose_name = "Ingest"

    def ready(self) -> None:
        """Register the error envelopes."""
        import_module("apps.ingest.errors")
