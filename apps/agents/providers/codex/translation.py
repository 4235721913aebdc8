"""What Codex notifies us of in a turn, as ModelEvents."""

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
from apps.agents.providers.codex.options import OWN
from apps.core.types import JSON

Events = Iterator[ModelEvent]
Words = type[TextDelta] | type[ReasoningDelta]

CODE_AND_WORDS = re.compile(r"\A([A-Z][A-Z_]{3,}): (.+)", re.DOTALL)
# Items that are done by Codex itself: their name as a tool, and what was asked for.
OWN_TOOLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "commandExecution": ("shell", ("command", "cwd")),
    "fileChange": ("apply_patch", ("changes",)),
    "webSearch": ("web_search", ("query",)),
}
OWN_RESULTS = ("aggregatedOutput", "exitCode", "changes", "action", "results")


class Translation:
    """One turn. `open` are the calls that have begun and not ended."""

    def __init__(self) -> None:
        self.open: dict[str, ToolCall] = {}
        self.thinking = False
        self.ended = False
        self._streamed: dict[str, list[str]] = {}
        self._commentary: set[str] = set()
        # The kinds of words that were said, and those of them whose block has ended: what comes
        # next is parted from it.
        self._said: set[Words] = set()
        self._ended_block: set[Words] = set()
        self._counted: list[JSON] = []
        self._total: JSON | None = None

    @property
    def busy(self) -> bool:
        """Codex is at work and may have nothing to say for long."""
        return bool(self.open) or self.thinking

    def feed(self, method: str, payload: JSON) -> Events:
        """The events of one notification; a Heartbeat where it has none to show.

        Raises Unavailable where the turn has failed or was broken off.
        """
        handler = METHODS.get(method)
        told = False
        for event in handler(self, payload) if handler else ():
            told = True
            yield event
        if not told:
            yield Heartbeat()

    def end(self) -> Events:
        """What is owed when no more notifications come."""
        for call in list(self.open.values()):
            yield self._closed(call, "CANCELLED", "The turn ended first.")

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
                yield from self._rest(item["id"], item["text"])
                self._ended_block.add(self._kind(item["id"]))
            case "reasoning":
                self.thinking = False
                if item["id"] not in self._streamed:
                    whole = "\n\n".join(item.get("summary") or item.get("content") or ())
                    yield from self._say(item["id"], whole, ReasoningDelta)
                self._ended_block.add(ReasoningDelta)
            case "mcpToolCall" | "commandExecution" | "fileChange" | "webSearch":
                yield from self._begin(item)
                yield self._finished(item)

    def _text(self, payload: JSON) -> Events:
        id = payload["itemId"]
        yield from self._say(id, payload["delta"], self._kind(id))

    def _thought(self, payload: JSON) -> Events:
        yield from self._say(payload["itemId"], payload["delta"], ReasoningDelta)

    def _next_thought(self, payload: JSON) -> Events:
        if payload["summaryIndex"]:
            self._ended_block.add(ReasoningDelta)
        yield from ()

    def _kind(self, id: str) -> Words:
        return ReasoningDelta if id in self._commentary else TextDelta

    def _say(self, id: str, text: str, kind: Words) -> Events:
        """More of an item. Where another of its kind came before it, a blank line parts them."""
        if not text:
            return
        self._streamed.setdefault(id, []).append(text)
        parted = kind in self._said and kind in self._ended_block
        self._said.add(kind)
        self._ended_block.discard(kind)
        yield kind(f"\n\n{text}" if parted else text)

    def _rest(self, id: str, whole: str) -> Events:
        """What a finished message says beyond what was streamed of it."""
        said = "".join(self._streamed.get(id, ()))
        if whole.startswith(said):
            yield from self._say(id, whole[len(said) :], self._kind(id))

    def _begin(self, item: JSON) -> Events:
        if item["id"] in self.open:
            return
        call = self.open[item["id"]] = _call(item)
        # A row of its own parts what is said before it from what is said after it.
        self._said.clear()
        yield ToolStarted(call)

    def _finished(self, item: JSON) -> ToolFinished:
        call = self.open[item["id"]]
        if item.get("status") in ("failed", "declined"):
            return self._closed(call, *_reason(item), _seconds(item))
        del self.open[call.id]
        return ToolFinished(ToolResult(call, _payload(item), seconds=_seconds(item)))

    def _closed(
        self, call: ToolCall, code: str, message: str, seconds: float | None = None
    ) -> ToolFinished:
        del self.open[call.id]
        result = ToolResult(call, error_code=code, error_message=message, seconds=seconds)
        return ToolFinished(result)

    def _usage(self, payload: JSON) -> Events:
        """Counted for each request to the model; a report that repeats the last adds nothing."""
        usage = payload["tokenUsage"]
        if usage["total"] != self._total:
            self._total = usage["total"]
            self._counted.append(usage["last"])
        yield UsageReported(_sum(self._counted))

    def _error(self, payload: JSON) -> Events:
        if payload.get("willRetry"):
            yield Warned(quoted(payload["error"].get("message")))

    def _ended(self, payload: JSON) -> Events:
        self.ended = True
        yield from self.end()
        turn = payload["turn"]
        match turn["status"]:
            case "failed":
                raise turn_failure(turn.get("error") or {})
            case "interrupted":
                raise interrupted()


METHODS: dict[str, Callable[[Translation, JSON], Events]] = {
    "item/started": Translation._started,
    "item/completed": Translation._completed,
    "item/agentMessage/delta": Translation._text,
    "item/reasoning/summaryPartAdded": Translation._next_thought,
    "item/reasoning/summaryTextDelta": Translation._thought,
    "item/reasoning/textDelta": Translation._thought,
    "thread/tokenUsage/updated": Translation._usage,
    "error": Translation._error,
    "turn/completed": Translation._ended,
}


def _call(item: JSON) -> ToolCall:
    """An item as a call; our own tools go by their own names, so that their rows are the same."""
    if item["type"] == "mcpToolCall":
        own = item["server"] == OWN
        name = item["tool"] if own else f"{item['server']}.{item['tool']}"
        arguments = item.get("arguments")
        return ToolCall(item["id"], name, arguments if isinstance(arguments, dict) else {})
    name, asked = OWN_TOOLS[item["type"]]
    return ToolCall(item["id"], name, {key: item[key] for key in asked if item.get(key)})


def _payload(item: JSON) -> Any:
    """What a call brought: an MCP result's structure, else its text; else what Codex tells."""
    if item["type"] != "mcpToolCall":
        return {key: item[key] for key in OWN_RESULTS if item.get(key) is not None}
    result = item.get("result") or {}
    structured = result.get("structuredContent")
    return structured if structured is not None else _as_json(_said(result))


def _said(result: JSON) -> str:
    texts = [part.get("text", "") for part in result.get("content") or () if isinstance(part, dict)]
    return "\n".join(filter(None, texts))


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}


def _reason(item: JSON) -> tuple[str, str]:
    """Why a call failed: our own tools begin with their code, others have none that is known."""
    said = _said(item.get("result") or {})
    if not said and item.get("error"):
        said = quoted(item["error"].get("message"))
    told = CODE_AND_WORDS.fullmatch(said)
    if told:
        return told[1], told[2]
    return "TOOL_FAILED", said or f"The call was {item.get('status')}."


def _seconds(item: JSON) -> float | None:
    spent = item.get("durationMs")
    return None if spent is None else round(spent / 1000, 3)


def _sum(counted: list[JSON]) -> Usage:
    names = ("inputTokens", "outputTokens", "totalTokens", "cachedInputTokens")
    return Usage(*(sum(one.get(name) or 0 for one in counted) for name in names))
