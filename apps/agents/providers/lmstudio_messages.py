"""Messages and tools in LM Studio's shapes, no longer than the model's context."""

import json
from typing import Any, assert_never

from apps.agents.history import fit
from apps.agents.messages import Message, ToolCall
from apps.agents.providers.base import ModelRequest
from apps.core.config import config
from apps.core.types import JSON
from apps.lmstudio.types import Question
from apps.retrieval.tools import Tool

# Code takes about three characters a token; prose more, which is on the safe side.
CHARS_PER_TOKEN = 3
# Of a context, what is kept for the answer: a quarter, and no more tokens than this.
MAX_ANSWER_TOKENS = 4_096


def question(request: ModelRequest, context: int | None) -> Question:
    """What to ask a model whose context has so many tokens; older turns are left out first."""
    tools = [_tool(tool) for tool in request.tools]
    room = config().openai_context
    if context is not None:
        tokens = context - min(context // 4, MAX_ANSWER_TOKENS)
        room = min(room, tokens * CHARS_PER_TOKEN - len(json.dumps(tools)))
    return Question([_message(message) for message in fit(request.messages, room)], tools)


def _message(message: Message) -> JSON:
    match message.role:
        case "system" | "user":
            return {"role": message.role, "content": [_text(message.text)]}
        case "assistant":
            # The SDK insists on a text before the calls, be it empty.
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
    """Arguments as the SDK takes them: it refuses lists of lists; inner ones become text."""
    match value:
        case dict():
            return {key: _sendable(item) for key, item in value.items()}
        case list():
            return [json.dumps(v) if isinstance(v, list) else _sendable(v) for v in value]
        case _:
            return value


def _tool(tool: Tool) -> JSON:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}
