"""The parts of a turn: text, reasoning and tool calls, in order.

    {"type": "text", "text": str}
    {"type": "reasoning", "text": str, "seconds": float | None}
    {"type": "tool", "callId": str, "name": str, "parameters": dict,
     "stage": "started" | "success" | "error", "result": Any,
     "error": {"code": str, "message": str} | None, "errorFull": Any, "seconds": float | None}

`errorFull` exists only if it says more than `error`: details, a stack, a response.

`seconds` are durations. This list is stored, and the page renders it, live and after a reload.
`content`, `answer` and `toolCalls` derive from it.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from apps.agents.events import (
    ChatEvent,
    ReasoningDelta,
    TextDelta,
    TextReclassified,
    ThreadNamed,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnStarted,
    TurnStopped,
    Warned,
)
from apps.agents.messages import ToolCall, ToolResult

Part = dict[str, Any]


class Transcript:
    """Applies ChatEvents to a list of parts.

    parts: the parts so far.
    warnings: distinct warnings, in order.
    thread_id: the provider's id of the conversation, once known.
    """

    def __init__(self, parts: Sequence[Part] = ()) -> None:
        self.parts: list[Part] = [dict(part) for part in parts]
        self.warnings: list[str] = []
        self.thread_id: str | None = None
        self._thinking_since: float | None = None

    def apply(self, event: ChatEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._close_reasoning()
                self._extend("text", text)
            case ReasoningDelta(text=text):
                if self._thinking_since is None:
                    self._thinking_since = time.monotonic()
                self._extend("reasoning", text)
            case TextReclassified():
                self._reclassify()
            case ToolStarted(call=call):
                self._close_reasoning()
                self.parts.append(tool_part(call))
            case ToolFinished(result=result):
                self._finish_tool(result)
            case TurnFinished() | TurnFailed() | TurnStopped():
                self._close_reasoning()
                self._close_tools()
            case ThreadNamed() | Warned():
                self._note(event)
            case TurnStarted():
                pass
            case _:
                assert_never(event)

    def _note(self, event: ThreadNamed | Warned) -> None:
        if isinstance(event, ThreadNamed):
            self.thread_id = event.thread_id
        elif event.message not in self.warnings:
            self.warnings.append(event.message)

    def _extend(self, kind: str, text: str) -> None:
        if self.parts and self.parts[-1]["type"] == kind:
            self.parts[-1]["text"] += text
        elif text:
            self.parts.append({"type": kind, "text": text})

    def _reclassify(self) -> None:
        for part in reversed(self.parts):
            if part["type"] == "tool":
                return
            if part["type"] == "text":
                part |= {"type": "reasoning", "seconds": None}

    def _finish_tool(self, result: ToolResult) -> None:
        for part in reversed(self.parts):
            if part["type"] == "tool" and part["callId"] == result.call.id:
                part.update(_outcome(result))
                return

    def _close_reasoning(self) -> None:
        if self._thinking_since is not None:
            for part in reversed(self.parts):
                if part["type"] == "reasoning":
                    part["seconds"] = round(time.monotonic() - self._thinking_since, 3)
                    break
            self._thinking_since = None

    def _close_tools(self) -> None:
        # The provider may end a turn without the end of a tool call.
        for part in self.parts:
            if part["type"] == "tool" and part["stage"] == "started":
                part["stage"] = "error"
                part["error"] = {
                    "code": "CANCELLED",
                    "message": "The answer ended during this call.",
                }


def content(parts: Sequence[Part]) -> str:
    """The concatenated text parts."""
    return "".join(part["text"] for part in parts if part["type"] == "text")


def reasoning(parts: Sequence[Part]) -> str:
    """The concatenated reasoning parts."""
    return "".join(part["text"] for part in parts if part["type"] == "reasoning")


def answer(parts: Sequence[Part]) -> str:
    """The last text that is not blank: the answer for callers that show no steps.

    Tool calls separate texts; reasoning does not.
    """
    texts = [""]
    for part in parts:
        if part["type"] == "tool":
            texts.append("")
        elif part["type"] == "text":
            texts[-1] += part["text"]
    return next((text for text in reversed(texts) if text.strip()), "")


def tool_part(call: ToolCall, result: ToolResult | None = None) -> Part:
    """The part of a call; without a result, of one that runs."""
    part = {
        "type": "tool",
        "callId": call.id,
        "name": call.name,
        "parameters": dict(call.arguments),
        "stage": "started",
        "result": None,
        "error": None,
        "seconds": None,
    }
    return part | (_outcome(result) if result else {})


def _outcome(result: ToolResult) -> Part:
    outcome: Part = {"stage": "success", "result": result.payload, "seconds": result.seconds}
    if result.ok:
        return outcome
    full = {"errorFull": result.full_error} if result.error_details else {}
    return outcome | {"stage": "error", "error": result.error} | full


def mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """All mappings in the parameters or the result of a tool, in order."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            yield value
            waiting += reversed([*value.values()])
        elif isinstance(value, list | tuple):
            waiting += reversed(value)


def tool_event(part: Part) -> dict[str, Any]:
    """A tool part as a tool-result or, while it runs, tool-request event (contract.md §2.4)."""
    event = {
        "type": "tool-request" if part["stage"] == "started" else "tool-result",
        "callId": part["callId"],
        "name": part["name"],
        "stage": part["stage"],
        "parameters": part["parameters"],
    }
    if part["stage"] != "started":
        event["result"] = part["result"]
    if part["error"]:
        event["errorTrimmed"] = part["error"]
        event["errorFull"] = part.get("errorFull", part["error"])
    return event


def call_event(call: ToolCall, result: ToolResult | None = None) -> dict[str, Any]:
    """The event of a call, or of its result."""
    return tool_event(tool_part(call, result))


def tool_calls(parts: Sequence[Part]) -> dict[str, Any] | None:
    """The `toolCalls` of a turn, `{"calls": [...]}` (contract.md §1.1); None without calls."""
    calls = [tool_event(part) for part in parts if part["type"] == "tool"]
    return {"calls": calls} if calls else None
