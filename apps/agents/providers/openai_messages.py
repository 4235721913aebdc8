"""Encode messages and tools for Chat Completions."""

import json
from collections.abc import Sequence
from typing import assert_never

from apps.agents.messages import Message, ToolCall
from apps.core.types import JSON
from apps.tools.tool import Tool


def body_of(model: str, messages: Sequence[Message], tools: Sequence[Tool]) -> JSON:
    """Return the request body; `messages` are fitted to the context (`history`)."""
    body: JSON = {
        "model": model,
        "messages": [_message(message) for message in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return body | ({"tools": _tools(tools)} if tools else {})


def _message(message: Message) -> JSON:
    match message.role:
        case "system" | "user":
            return {"role": message.role, "content": message.text}
        case "assistant" if message.tool_calls:
            calls = [_call(call) for call in message.tool_calls]
            return {"role": "assistant", "content": message.text or None, "tool_calls": calls}
        case "assistant":
            return {"role": "assistant", "content": message.text}
        case "tool":
            assert message.tool_result is not None  # `fit` keeps no other
            id = message.tool_result.call.id
            return {"role": "tool", "tool_call_id": id, "content": message.text}
        case _:
            assert_never(message.role)


def _call(call: ToolCall) -> JSON:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _tools(tools: Sequence[Tool]) -> list[JSON]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]
