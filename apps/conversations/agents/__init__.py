"""Runs of agents: what they are asked and with which limits, their commands, their page and API.

The agents themselves are folders, read by `apps.agents.definitions`; an answer of one is a run like
any other, by `apps.conversations.runner`.
"""
