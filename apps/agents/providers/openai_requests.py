"""Requests of Chat Completions, and of one that is refused: the same request without that part.

Servers and models differ in what they take. What a model has refused is remembered for the life of
the process: usage counts of a server, tools of a model. The size of a context is not, since it
changes when the model is loaded again.
"""

import json
from collections.abc import Sequence
from typing import Any, assert_never

import re2

from apps.agents.history import count_chars, fit, shorten, without_calls
from apps.agents.messages import Message, ToolCall
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.calls import function
from apps.core.config import config
from apps.core.types import JSON
from apps.retrieval.query import MAX_QUERY
from apps.servers.types import Server
from apps.tools.tool import Tool


def body_of(model: str, messages: Sequence[Message], tools: Sequence[Tool]) -> JSON:
    """Return the request body; `messages` are fitted to the context (`history`)."""
    body: JSON = {
        "model": model,
        "messages": [_message(message) for message in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    functions = [function(tool, tool.parameters) for tool in tools]
    return body | ({"tools": functions} if tools else {})


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


# A refusal for want of context takes a third of the messages away; so often at most.
MAX_CUTS = 8
MAX_REMEMBERED = 1_000
MAX_ERROR = 4_000

CONTEXT_CUT = (
    "*The context of the model was too small for all that was found: the oldest results and "
    "messages were left out.*"
)

# The tools that look a question up for a model without tools, the better first, and their argument.
SEARCHES = (("Context", "question"), ("VectorSearch", "query"))

# Ollama, LM Studio, Groq, DeepSeek, OpenRouter; llama.cpp; vLLM; Gemini; OpenAI.
_NO_TOOLS = re2.compile(
    r"support(?:s|ed)? (?:for )?.{0,30}?\b(?:tool|function)|unsupported param\w*:? {0,3}.{0,3}tools"
    r"|\b(?:tools?|functions|function[ _-]call\w*|tool[ _-](?:call\w*|choice|use))\b.{0,60}?"
    r"(?:not (?:currently )?(?:support|enabled|available|permitted|allowed|implemented)|unsupported"
    r"|requires? --)"
    r"|(?:argument|permitted)[^:]{0,20}: {0,3}tools|unknown field:? .{0,2}tools"
    r"|tools.{0,80}extra (?:inputs|fields) are not permitted|no tool[ -]call parser|no tool parser"
)
_NO = re2.compile(r"\b(?:not|n't|no|un\w+|requires?|cannot|extra)\b|n't\b")
# OpenAI, vLLM, llama.cpp, LM Studio, Mistral, Anthropic, text-generation-inference, Groq.
_TOO_LONG = re2.compile(
    r"context_length_exceeded|exceed_context_size|(?:maximum|max|available) context (?:length|size)"
    r"|context (?:length|size|window).{0,60}(?:exceed|overflow|too)"
    r"|(?:exceed|greater|longer|larger|overflow).{0,60}(?:context|maximum model length)"
    r"|prompt (?:is )?too (?:long|large)|too large for model|reduce the length of the messages"
    r"|`?inputs`? tokens? .{0,40}must|context length is only|context overflow|n_keep.{0,20}n_ctx"
    r"|(?:input|prompt|token)s?\b.{0,60}(?:exceed|(?:longer|larger|more|greater) than).{0,60}"
    r"(?:max|limit|allow)|(?:input|prompt) is too large|too many (?:input )?tokens"
    r"|input ?token ?limit|has .{0,20}tokens, but .{0,20}max|range of input length"
)
_STATUSES = (None, 400, 404, 413, 422, 500, 501)  # None: an error in the stream

# What was refused: the server's address, the field, and the model where it depends on that.
refused: dict[tuple[str, ...], None] = {}


class ServerError(Exception):
    """An error that the server has sent.

    body: its words, in whatever shape they came.
    status: of the reply; None for an error in the stream.
    retry_after: the header of that name: seconds, a date, or "".
    """

    def __init__(self, body: Any, status: int | None = None, retry_after: str = "") -> None:
        super().__init__(status)
        if isinstance(body, list) and body:  # Gemini's: `[{"error": {…}}]`
            body = body[0]
        while isinstance(body, dict) and body.get("error"):
            body = body["error"]
        self.body = body
        self.status = status
        self.retry_after = retry_after

    @property
    def words(self) -> str:
        """The server's message; all that it sent if that has none."""
        words = self.body
        if isinstance(words, dict):
            words = words.get("message") or words.get("detail")
        # Some servers send `{"error": "text"}`.
        return words if isinstance(words, str) else str(words or self.body or "")

    @property
    def code(self) -> Any:
        return self.body.get("code") if isinstance(self.body, dict) else None


class Attempts:
    """The request of one round, in the form that the server takes."""

    def __init__(self, server: Server, request: ModelRequest) -> None:
        self._request = request
        self._usage = (server.address, "stream_options")
        self._tools = (server.address, "tools", request.model)
        self._messages: Sequence[Message] = fit(request.messages, config().openai_context)
        self._cuts = 0
        self._has_tools = bool(request.tools) and self._tools not in refused

    @property
    def is_cut(self) -> bool:
        return self._cuts > 0

    def search(self) -> ToolCall | None:
        """Return the call that looks the question up, if the model cannot and nothing has."""
        last = self._request.messages[-1]
        if self._has_tools or last.role != "user":
            return None
        offered = {tool.name for tool in self._request.tools}
        for name, argument in SEARCHES:
            if name in offered:
                return ToolCall("search", name, {argument: last.text[:MAX_QUERY]})
        return None

    def body(self) -> JSON:
        tools: Sequence[Tool] = self._request.tools if self._has_tools else ()
        messages = self._messages
        if not self._has_tools and (self._request.tools or self._tools in refused):
            messages = without_calls(messages)
        body = body_of(self._request.model, messages, tools)
        if self._usage in refused:
            del body["stream_options"]
        return body

    def adapt(self, error: Exception) -> bool:
        """Leave out what the server has refused. Return whether to ask it again."""
        if not isinstance(error, ServerError) or error.status not in _STATUSES:
            return False
        status, text = error.status, f"{error.words} {error.body}"[:MAX_ERROR].lower()
        if status in (400, 422) and "stream_options" in text and self._usage not in refused:
            _remember(self._usage)
            return True
        if _TOO_LONG.search(text):
            return self._cut()
        refuses_tools = _NO.search(text) and _NO_TOOLS.search(text)
        if self._tools not in refused and refuses_tools:
            _remember(self._tools)
            self._has_tools = False
            return True
        return False

    def _cut(self) -> bool:
        """Make the request shorter, if that is possible: the messages, then the tools."""
        size = count_chars(self._messages)
        shorter = shorten(self._messages, size * 2 // 3)
        if self._cuts < MAX_CUTS and count_chars(shorter) < size:
            self._messages = shorter
            self._cuts += 1
            return True
        had_tools, self._has_tools = self._has_tools, False
        return had_tools


def _remember(key: tuple[str, ...]) -> None:
    refused[key] = None
    if len(refused) > MAX_REMEMBERED:
        del refused[next(iter(refused))]
