"""Validate the arguments of a tool call from a server."""

from dataclasses import replace
from typing import Any

from apps.agents.messages import ToolCall
from apps.agents.providers.characters import clean_json
from apps.core.http.limits import MAX_DEPTH, is_deep


def with_arguments(call: ToolCall, arguments: Any) -> ToolCall:
    """Return the call with cleaned arguments, or with `error` set. None means no arguments."""
    if arguments is None:
        return call
    if not isinstance(arguments, dict):
        return replace(call, error="The arguments must be a JSON object.")
    if is_deep(arguments):
        return replace(call, error=f"The arguments are nested more than {MAX_DEPTH} levels deep.")
    return replace(call, arguments=clean_json(arguments))
