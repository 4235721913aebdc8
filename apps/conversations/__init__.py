"""Conversations, their turns, and the runs that answer them.

An "agent" here is the owner of a conversation other than the chat: its name (`agent_name`) and the
settings of its runs (`AgentSettings`), both from a definition in `apps.agent_runs`. The loop that
calls a model and its tools is "the loop" (`apps.agents.loop`).
"""
