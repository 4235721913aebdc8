"""Encode messages and tools for the LM Studio SDK, fitted to the model's context."""

import json
import re
from collections.abc import Mapping
from typing import Any, assert_never

from apps.agents.history import fit
from apps.agents.messages import Message, ToolCall
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.calls import function
from apps.core.config import config
from apps.core.types import JSON
from apps.lmstudio.types import PredictionRequest

# Code has about three characters a token; prose has more, so this is conservative.
CHARS_PER_TOKEN = 3
# A quarter of the context is reserved for the answer, but at most so many tokens.
MAX_ANSWER_TOKENS = 4_096


def prediction_request(request: ModelRequest, context: int | None) -> PredictionRequest:
    """Encode a request for a model with `context` tokens (None: unknown).

    Drops older turns first; the limit is also CODEINFO_OPENAI_CONTEXT_CHARS.
    """
    tools = [function(tool, _with_camel_case(tool.parameters)) for tool in request.tools]
    max_chars = config().openai_context
    if context is not None:
        tokens = context - min(context // 4, MAX_ANSWER_TOKENS)
        max_chars = min(max_chars, tokens * CHARS_PER_TOKEN - len(json.dumps(tools)))
    return PredictionRequest(
        [_message(message) for message in fit(request.messages, max_chars)], tools
    )


def _message(message: Message) -> JSON:
    match message.role:
        case "system" | "user":
            return {"role": message.role, "content": [_text(message.text)]}
        case "assistant":
            # The SDK requires a text before the calls, even an empty one.
            calls = map(_call, message.tool_calls)
            return {"role": "assistant", "content": [_text(message.text), *calls]}
        case "tool":
            assert message.tool_result is not None  # `fit` keeps no other
            id = message.tool_result.call.id
            result = {"type": "toolCallResult", "toolCallId": id, "content": message.text}
            return {"role": "tool", "content": [result]}
        case _:
            assert_never(message.role)


def _text(text: str) -> JSON:
    return {"type": "text", "text": text}


def _call(call: ToolCall) -> JSON:
    request = {
        "type": "function",
        "id": call.id,
        "name": call.name,
        "arguments": _sendable(dict(call.arguments)),
    }
    return {"type": "toolCallRequest", "toolCallRequest": request}


def _sendable(value: Any) -> Any:
    """Encode inner lists as JSON text: the SDK rejects lists of lists."""
    match value:
        case dict():
            return {key: _sendable(item) for key, item in value.items()}
        case list():
            return [json.dumps(v) if isinstance(v, list) else _sendable(v) for v in value]
        case _:
            return value


def _with_camel_case(parameters: JSON) -> JSON:
    """Rename the arguments in a schema as the SDK does, which leaves `required` as it is."""
    properties = parameters.get("properties", {})
    renamed: JSON = {"properties": {_camel(name): schema for name, schema in properties.items()}}
    if "required" in parameters:
        renamed["required"] = [_camel(name) for name in parameters["required"]]
    return parameters | renamed


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def own_names(arguments: Mapping[str, Any]) -> JSON:
    """Arguments by the names that the tools have: `ignore_case` for `ignoreCase`."""
    return {re.sub("[A-Z]", lambda c: f"_{c[0].lower()}", name): v for name, v in arguments.items()}
