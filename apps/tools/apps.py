from importlib import import_module

from django.apps import AppConfig


class ToolsConfig(AppConfig):
    name = "apps.tools"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.tools.errors")
