"""Separate a model's reasoning from its answer when both come in one text (contract.md §3).

Open models put reasoning between markers: `<think>…</think>`, or the channels of OpenAI's Harmony
format (`<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`).
The parser is incremental: fragments may end anywhere, and no part of a marker is ever emitted.
"""

import re

from apps.agents.events import ReasoningDelta, TextDelta

ANALYSIS, FINAL, UNCHANGED = "analysis", "final", ""

# Marker → the mode of the text after it.
MARKERS = {
    "<think>": ANALYSIS,
    "</think>": FINAL,
    "<|channel|>analysis<|message|>": ANALYSIS,
    "<|channel|>commentary<|message|>": FINAL,
    "<|channel|>final<|message|>": FINAL,
    "<|start|>assistant<|channel|>final<|message|>": FINAL,
    "<|start|>assistant": UNCHANGED,
    "<|end|>": UNCHANGED,
    "<|return|>": UNCHANGED,
}
# The longest marker matches first.
_MARKER = re.compile("|".join(re.escape(m) for m in sorted(MARKERS, key=len, reverse=True)))
_BEGINNINGS = frozenset(marker[:size] for marker in MARKERS for size in range(1, len(marker)))
_LONGEST = max(map(len, MARKERS))

Delta = TextDelta | ReasoningDelta


class MarkerParser:
    """An incremental parser for the text of one round.

    Buffers text only while it may be the beginning of a marker.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._mode = FINAL
        self._begun: set[str] = set()
        self._marked = False

    def feed(self, text: str) -> list[Delta]:
        """Parse the next fragment and return the deltas that are certain."""
        self._pending += text
        return self._consume(self._stable_length())

    def reasoning(self, text: str) -> list[Delta]:
        """Emit reasoning that the server sends in a separate field; text follows it."""
        deltas = self.flush()
        self._mode = FINAL
        return [*deltas, ReasoningDelta(text)] if text else deltas

    def flush(self) -> list[Delta]:
        """Emit the buffered text. Called at the end of the round."""
        return self._consume(len(self._pending))

    def _stable_length(self) -> int:
        """Return the length of the text before the first possible beginning of a marker."""
        size = len(self._pending)
        start = self._pending.find("<", max(0, size - _LONGEST + 1))
        while start >= 0:
            if self._pending[start:] in _BEGINNINGS:
                return start
            start = self._pending.find("<", start + 1)
        return size

    def _consume(self, end: int) -> list[Delta]:
        deltas: list[Delta] = []
        start = 0
        while (match := _MARKER.search(self._pending, start)) and match.start() < end:
            self._emit(self._pending[start : match.start()], deltas)
            self._mode = MARKERS[match[0]] or self._mode
            self._marked = True
            start = match.end()
        end = max(start, end)
        self._emit(self._pending[start:end], deltas)
        self._pending = self._pending[end:]
        return deltas

    def _emit(self, text: str, deltas: list[Delta]) -> None:
        # Models put blank lines around markers; they belong to neither side.
        if self._marked and self._mode not in self._begun:
            text = text.lstrip()
        if text:
            self._begun.add(self._mode)
            deltas.append(ReasoningDelta(text) if self._mode == ANALYSIS else TextDelta(text))
