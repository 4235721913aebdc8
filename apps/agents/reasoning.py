"""Thinking that a model writes into its text, told apart from what it means to say.

Open models put their thinking between markers: `<think>…</think>`, or Harmony's channels
(`<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`). The parser
takes the text as it arrives, cut anywhere, and never lets a marker through (docs/contract.md §3).
"""

import re

from apps.agents.events import ReasoningDelta, TextDelta

ANALYSIS, FINAL, UNCHANGED = "analysis", "final", ""

# Marker → what the text after it is.
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
# Of two markers that begin at the same place the longer one is meant.
_MARKER = re.compile("|".join(re.escape(m) for m in sorted(MARKERS, key=len, reverse=True)))
_BEGINNINGS = frozenset(marker[:size] for marker in MARKERS for size in range(1, len(marker)))
_LONGEST = max(map(len, MARKERS))

Delta = TextDelta | ReasoningDelta


class MarkerParser:
    """Feed it the text of one round in pieces; it answers with what can be told so far.

    Text is held back only while it may be the beginning of a marker.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._mode = FINAL
        self._begun: set[str] = set()
        self._marked = False

    def feed(self, text: str) -> list[Delta]:
        """More text from the model."""
        self._pending += text
        return self._take(self._held())

    def reasoning(self, text: str) -> list[Delta]:
        """Thinking that came outside the text, in a field of its own; text comes next."""
        deltas = self.flush()
        self._mode = FINAL
        return [*deltas, ReasoningDelta(text)] if text else deltas

    def flush(self) -> list[Delta]:
        """The round is over: what was held back is text after all."""
        return self._take(len(self._pending))

    def _held(self) -> int:
        """Where the text begins that may become a marker (or a longer one) with more of it."""
        size = len(self._pending)
        start = self._pending.find("<", max(0, size - _LONGEST + 1))
        while start >= 0:
            if self._pending[start:] in _BEGINNINGS:
                return start
            start = self._pending.find("<", start + 1)
        return size

    def _take(self, end: int) -> list[Delta]:
        deltas: list[Delta] = []
        start = 0
        while (match := _MARKER.search(self._pending, start)) and match.start() < end:
            self._say(self._pending[start : match.start()], deltas)
            self._mode = MARKERS[match[0]] or self._mode
            self._marked = True
            start = match.end()
        end = max(start, end)
        self._say(self._pending[start:end], deltas)
        self._pending = self._pending[end:]
        return deltas

    def _say(self, text: str, deltas: list[Delta]) -> None:
        # Models set blank lines round their markers; they belong to neither side.
        if self._marked and self._mode not in self._begun:
            text = text.lstrip()
        if text:
            self._begun.add(self._mode)
            deltas.append(ReasoningDelta(text) if self._mode == ANALYSIS else TextDelta(text))
