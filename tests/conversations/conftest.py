"""Fixtures of a conversation with a scripted provider."""

from tests.support.chat import ask, nothing_left_running, scripted

__all__ = ["ask", "nothing_left_running", "scripted"]
