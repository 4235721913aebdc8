from django.apps import AppConfig


class AgentRunsConfig(AppConfig):
    name = "apps.agent_runs"
    verbose_name = "Agents"
