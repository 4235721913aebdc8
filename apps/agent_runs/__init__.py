"""Agents: their folders, what runs of them are asked and with which limits, their commands, page
and API.

An answer of an agent is a run like any other, by `apps.conversations.runner`.
"""
