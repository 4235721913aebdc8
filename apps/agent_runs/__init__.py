"""Agents: their definitions (folders on disk), their runs and commands, the page and the API.

An "agent" here is a definition: a folder that names a provider, a model, tools and rights. A run of
an agent is a run of `apps.conversations.runner` with the settings of that definition.
"""
