"""Describe tools to servers, and validate the arguments of their calls."""

import json
import math
from dataclasses import replace
from typing import Any, NoReturn
from uuid import uuid4

from apps.agents.messages import ToolCall
from apps.agents.providers.characters import clean_json
from apps.core.http.limits import MAX_DEPTH, is_deep
from apps.core.types import JSON
from apps.tools.tool import Tool


def _reject_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON value")


def _finite_float(text: str) -> float:
    """Reject 1e999: it is valid JSON but infinite, which no database stores."""
    number = float(text)
    return number if math.isfinite(number) else _reject_constant(text)


# Takes line breaks in texts, which models write; raises ValueError and RecursionError.
DECODER = json.JSONDecoder(strict=False, parse_constant=_reject_constant, parse_float=_finite_float)


def function(tool: Tool, parameters: JSON) -> JSON:
    """Return a tool as the API of OpenAI and the SDK of LM Studio take it."""
    described = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": described}


def new_id() -> str:
    return f"call_{uuid4().hex[:24]}"


def with_arguments(call: ToolCall, arguments: Any) -> ToolCall:
    """Return the call with cleaned arguments, or with `error` set. None means no arguments."""
    if arguments is None:
        return call
    if not isinstance(arguments, dict):
        return replace(call, error="The arguments must be a JSON object.")
    if is_deep(arguments):
        return replace(call, error=f"The arguments are nested more than {MAX_DEPTH} levels deep.")
    return replace(call, arguments=clean_json(arguments))
