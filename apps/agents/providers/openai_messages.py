"""Encode messages and tools for Chat Completions."""

import json
from collections.abc import Sequence
from typing import assert_never

from apps.agents.history import fit
from apps.agents.messages import Message, ToolCall
from apps.agents.providers.base import ModelRequest
from apps.core.config import config
from apps.core.types import JSON
from apps.tools.tool import Tool


def body_of(request: ModelRequest) -> JSON:
    """Return the request body, its history fitted to CODEINFO_OPENAI_CONTEXT_CHARS."""
    messages = fit(request.messages, config().openai_context)
    body: JSON = {
        "model": request.model,
        "messages": [_message(message) for message in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return body | ({"tools": _tools(request.tools)} if request.tools else {})


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
