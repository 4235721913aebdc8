"""Translate the notifications of a turn (`codex app-server` protocol) to ModelEvents."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from apps.agents.events import (
    Heartbeat,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
    UsageReported,
    Warned,
)
from apps.agents.messages import ToolCall, ToolResult, Usage
from apps.agents.providers.codex.failures import interrupted, quoted, turn_failure
from apps.agents.providers.codex.wire import OWN_SERVER
from apps.core.types import JSON
from apps.tools.capping import FULL_META_KEY

Events = Iterator[ModelEvent]
DeltaType = type[TextDelta] | type[ReasoningDelta]

CODE_AND_MESSAGE = re.compile(r"\A([A-Z][A-Z_]{3,}): (.+)", re.DOTALL)
# Item type of a tool that Codex runs itself → tool name and the fields that are its arguments.
OWN_TOOLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "commandExecution": ("shell", ("command", "cwd")),
    "fileChange": ("apply_patch", ("changes",)),
    "webSearch": ("web_search", ("query",)),
}
OWN_RESULTS = ("aggregatedOutput", "exitCode", "changes", "action", "results")


class TurnTranslator:
    """Translates one turn.

    open: calls that have started and not ended, by item id.
    thinking: True while the model reasons.
    requests: how often Codex has asked the model.
    ended: True after "turn/completed".
    """

    def __init__(self) -> None:
        self.open: dict[str, ToolCall] = {}
        self.thinking = False
        self.requests = 0
        self.ended = False
        self._streamed: dict[str, list[str]] = {}
        self._commentary: set[str] = set()
        # Delta types emitted since the last tool call, and those whose block has ended: the next
        # text of that type is separated by a blank line.
        self._emitted: set[DeltaType] = set()
        self._ended_block: set[DeltaType] = set()
        self._usages: list[JSON] = []
        self._total: JSON | None = None

    @property
    def busy(self) -> bool:
        """True while Codex works and may be silent for long."""
        return bool(self.open) or self.thinking

    def feed(self, method: str, payload: JSON) -> Events:
        """Yield the events of one notification; a Heartbeat if it has none.

        Raises Unavailable if the turn failed or was interrupted.
        """
        handler = METHODS.get(method)
        emitted = False
        for event in handler(self, payload) if handler else ():
            emitted = True
            yield event
        if not emitted:
            yield Heartbeat()

    def _started(self, payload: JSON) -> Events:
        item = payload["item"]
        match item["type"]:
            case "agentMessage":
                if item.get("phase") == "commentary":
                    self._commentary.add(item["id"])
            case "reasoning":
                self.thinking = True
            case "mcpToolCall" | "commandExecution" | "fileChange":
                yield from self._begin(item)

    def _completed(self, payload: JSON) -> Events:
        item = payload["item"]
        match item["type"]:
            case "agentMessage":
                yield from self._remainder(item["id"], item["text"])
                self._ended_block.add(self._kind(item["id"]))
            case "reasoning":
                self.thinking = False
                if item["id"] not in self._streamed:
                    whole = "\n\n".join(item.get("summary") or item.get("content") or ())
                    yield from self._emit(item["id"], whole, ReasoningDelta)
                self._ended_block.add(ReasoningDelta)
            case "mcpToolCall" | "commandExecution" | "fileChange" | "webSearch":
                yield from self._begin(item)
                yield self._finished(item)

    def _text_delta(self, payload: JSON) -> Events:
        id = payload["itemId"]
        yield from self._emit(id, payload["delta"], self._kind(id))

    def _reasoning_delta(self, payload: JSON) -> Events:
        yield from self._emit(payload["itemId"], payload["delta"], ReasoningDelta)

    def _reasoning_part(self, payload: JSON) -> Events:
        if payload["summaryIndex"]:
            self._ended_block.add(ReasoningDelta)
        yield from ()

    def _kind(self, id: str) -> DeltaType:
        return ReasoningDelta if id in self._commentary else TextDelta

    def _emit(self, id: str, text: str, kind: DeltaType) -> Events:
        """Emit text of an item, after a blank line if a block of the same type came before."""
        if not text:
            return
        self._streamed.setdefault(id, []).append(text)
        new_block = kind in self._emitted and kind in self._ended_block
        self._emitted.add(kind)
        self._ended_block.discard(kind)
        yield kind(f"\n\n{text}" if new_block else text)

    def _remainder(self, id: str, whole: str) -> Events:
        """Emit the part of a finished message that was not streamed."""
        streamed = "".join(self._streamed.get(id, ()))
        if whole.startswith(streamed):
            yield from self._emit(id, whole[len(streamed) :], self._kind(id))

    def _begin(self, item: JSON) -> Events:
        if item["id"] in self.open:
            return
        call = self.open[item["id"]] = _call(item)
        # The tool's row already separates the text before and after it.
        self._emitted.clear()
        yield ToolStarted(call)

    def _finished(self, item: JSON) -> ToolFinished:
        call = self.open.pop(item["id"])
        if item.get("status") not in ("failed", "declined"):
            return ToolFinished(ToolResult(call, _payload(item), seconds=_seconds(item)))
        code, message = _reason(item)
        response = {key: item[key] for key in ("error", "result") if item.get(key)}
        details = {"response": response} if response else None
        return ToolFinished(ToolResult(call, None, code, message, details, _seconds(item)))

    def _usage(self, payload: JSON) -> Events:
        """Sum the usage of the model requests; ignore a report that repeats the last total."""
        self.requests += 1
        usage = payload["tokenUsage"]
        if usage["total"] != self._total:
            self._total = usage["total"]
            self._usages.append(usage["last"])
        yield UsageReported(_sum(self._usages))

    def _error(self, payload: JSON) -> Events:
        """Warn of a reconnect. The reasoning of the cut stream has ended: it never completes."""
        if payload.get("willRetry"):
            self.thinking = False
            error = payload["error"]
            words = filter(None, (error.get("message"), error.get("additionalDetails")))
            yield Warned(quoted(": ".join(words)))

    def _turn_completed(self, payload: JSON) -> Events:
        self.ended = True
        for call in self.open.values():
            message = "The answer ended during this call."
            yield ToolFinished(ToolResult(call, error_code="CANCELLED", error_message=message))
        self.open.clear()
        turn = payload["turn"]
        match turn["status"]:
            case "failed":
                raise turn_failure(turn.get("error") or {})
            case "interrupted":
                raise interrupted()


METHODS: dict[str, Callable[[TurnTranslator, JSON], Events]] = {
    "item/started": TurnTranslator._started,
    "item/completed": TurnTranslator._completed,
    "item/agentMessage/delta": TurnTranslator._text_delta,
    "item/reasoning/summaryPartAdded": TurnTranslator._reasoning_part,
    "item/reasoning/summaryTextDelta": TurnTranslator._reasoning_delta,
    "item/reasoning/textDelta": TurnTranslator._reasoning_delta,
    "thread/tokenUsage/updated": TurnTranslator._usage,
    "error": TurnTranslator._error,
    "turn/completed": TurnTranslator._turn_completed,
}


def _call(item: JSON) -> ToolCall:
    """Convert an item to a call. Our own tools have no server prefix, as with other providers."""
    if item["type"] == "mcpToolCall":
        own = item["server"] == OWN_SERVER
        name = item["tool"] if own else f"{item['server']}.{item['tool']}"
        arguments = item.get("arguments")
        return ToolCall(item["id"], name, arguments if isinstance(arguments, dict) else {})
    name, fields = OWN_TOOLS[item["type"]]
    return ToolCall(item["id"], name, {key: item[key] for key in fields if item.get(key)})


def _payload(item: JSON) -> Any:
    """Return a call's payload: the full form of our tools, else an MCP result's structured content
    or text, or Codex's fields."""
    if item["type"] != "mcpToolCall":
        return {key: item[key] for key in OWN_RESULTS if item.get(key) is not None}
    result = item.get("result") or {}
    # Of another server, the page shows what the model has.
    meta = result.get("_meta") if item["server"] == OWN_SERVER else None
    structured = (meta or {}).get(FULL_META_KEY) or result.get("structuredContent")
    return structured if structured is not None else _as_json(_text_of(result))


def _text_of(result: JSON) -> str:
    texts = [part.get("text", "") for part in result.get("content") or () if isinstance(part, dict)]
    return "\n".join(filter(None, texts))


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}


def _reason(item: JSON) -> tuple[str, str]:
    """Return the code and message of a failed call. Our tools put their code before the message."""
    message = _text_of(item.get("result") or {})
    if not message and item.get("error"):
        message = quoted(item["error"].get("message"))
    match = CODE_AND_MESSAGE.fullmatch(message)
    if match:
        return match[1], match[2]
    return "TOOL_FAILED", message or f"The call was {item.get('status')}."


def _seconds(item: JSON) -> float | None:
    spent = item.get("durationMs")
    return None if spent is None else round(spent / 1000, 3)


def _sum(usages: list[JSON]) -> Usage:
    names = ("inputTokens", "outputTokens", "totalTokens", "cachedInputTokens")
    return Usage(*(sum(one.get(name) or 0 for one in usages) for name in names))
