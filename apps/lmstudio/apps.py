from importlib import import_module

from django.apps import AppConfig


class LMStudioConfig(AppConfig):
    name = "apps.lmstudio"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.lmstudio.errors")
