from importlib import import_module

from django.apps import AppConfig


class ConversationsConfig(AppConfig):
    name = "apps.conversations"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.conversations.errors")
