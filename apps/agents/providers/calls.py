"""The arguments of a tool call, as a server sent them, made fit to be run, stored and sent back."""

from dataclasses import replace
from typing import Any

from apps.agents.messages import ToolCall
from apps.agents.providers.characters import cleaned
from apps.core.limits import MAX_DEPTH, is_deep


def checked(call: ToolCall, arguments: Any) -> ToolCall:
    """The call with its arguments, or with what is wrong with them; null counts as none."""
    if arguments is None:
        return call
    if not isinstance(arguments, dict):
        return replace(call, error="The arguments must be a JSON object.")
    if is_deep(arguments):
        return replace(call, error=f"The arguments are nested more than {MAX_DEPTH} levels deep.")
    return replace(call, arguments=cleaned(arguments))
