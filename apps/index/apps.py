"""The index: its rows, vectors and words."""

from importlib import import_module

from django.apps import AppConfig


class IndexConfig(AppConfig):
    name = "apps.index"
    verbose_name = "Index"

    def ready(self) -> None:
        """Register the HTTP statuses of the errors."""
        import_module("apps.embedding.errors")
        import_module("apps.index.errors")
