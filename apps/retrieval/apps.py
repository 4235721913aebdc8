from importlib import import_module

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.retrieval.errors")
