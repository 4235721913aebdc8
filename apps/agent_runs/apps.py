from importlib import import_module

from django.apps import AppConfig


class AgentRunsConfig(AppConfig):
    name = "apps.agent_runs"
    verbose_name = "Agents"

    def ready(self) -> None:
        """Register the statuses and envelopes of the errors."""
        import_module("apps.agent_runs.errors")
