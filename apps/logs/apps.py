from importlib import import_module

from django.apps import AppConfig


class LogsConfig(AppConfig):
    name = "apps.logs"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.logs.errors")
