"""Separate a model's reasoning from its answer when both come in one text (contract.md §3).

Open models put reasoning between markers: `<think>…</think>`, or the channels of OpenAI's Harmony
format (`<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`).
The parser is incremental: fragments may end anywhere, and no part of a marker is ever emitted.
A marker in a code block, in inline code or in quotes is text: answers about these markers quote
them.
"""

import re

from apps.agents.events import ReasoningDelta, TextDelta, TextReclassified
from apps.agents.markdown_place import MarkdownPlace

ANALYSIS, FINAL, UNCHANGED, KEPT = "analysis", "final", "", "kept"

_TAGS = (
    *("think", "thinking", "thought", "thoughts", "reason", "reasoning", "seed:think"),
    *("longcat_think", "antThinking"),
)
# Marker → the mode of the text after it. KEPT: final, and the marker is part of the text, since it
# begins a tool call (`printed_calls`).
MARKERS = {
    **{f"<{tag}>": ANALYSIS for tag in _TAGS},
    **{f"</{tag}>": FINAL for tag in _TAGS},
    "[THINK]": ANALYSIS,
    "[/THINK]": FINAL,
    "◁think▷": ANALYSIS,
    "◁/think▷": FINAL,
    "<|channel>thought": ANALYSIS,  # Gemma 4
    "<channel|>": FINAL,
    "<unused94>thought": ANALYSIS,  # Gemma 3
    "<unused95>": FINAL,
    "<|inner_prefix|>": ANALYSIS,  # Apertus
    "<|inner_suffix|>": FINAL,
    "<|begin_of_thought|>": ANALYSIS,
    "<|end_of_thought|>": FINAL,
    "<|begin_of_solution|>": FINAL,
    "<|end_of_solution|>": UNCHANGED,
    "<|START_THINKING|>": ANALYSIS,
    "<|END_THINKING|>": FINAL,
    "<|START_RESPONSE|>": FINAL,
    "<|END_RESPONSE|>": UNCHANGED,
    "<|channel|>analysis<|message|>": ANALYSIS,
    "<|channel|>commentary<|message|>": FINAL,
    "<|channel|>final<|message|>": FINAL,
    "<|channel|>analysis to=": KEPT,
    "<|channel|>commentary to=": KEPT,
    "<|start|>assistant<|channel|>final<|message|>": FINAL,
    "<|start|>assistant to=": KEPT,
    "<|start|>assistant": UNCHANGED,
    "<|im_start|>assistant": UNCHANGED,
    "<|start_header_id|>assistant<|end_header_id|>": UNCHANGED,
    "<|end|>": UNCHANGED,
    "<|return|>": UNCHANGED,
}
# Control tokens that a server should have removed. They are left out at the end of a round only,
# since some are also HTML.
END_TOKENS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|end_of_text|>", "<|endoftext|>"),
    *(
        "<|eos|>",
        "<|user|>",
        "<|observation|>",
        "<|endofturn|>",
        "<|END_OF_TURN_TOKEN|>",
        "[e~[",
        "[|endofturn|]",
    ),
    *("<|call|>", "</s>", "<eos>", "<end_of_turn>", "<turn|>", "<｜end▁of▁sentence｜>"),
)
# Whether an end has been reached is looked at in so many characters.
_MAX_END = 2_000

_ALL = (*MARKERS, *END_TOKENS)
# The longest marker matches first.
_MARKER = re.compile("|".join(re.escape(m) for m in sorted(_ALL, key=len, reverse=True)))
_ENDS = re.compile("|".join([r"(?:\s", *map(re.escape, END_TOKENS)]) + ")*")
_BEGINNINGS = frozenset(marker[:size] for marker in _ALL for size in range(1, len(marker)))
_LONGEST = max(map(len, _ALL))

Delta = TextDelta | ReasoningDelta | TextReclassified


class MarkerParser:
    """An incremental parser for the text of one round.

    Buffers text only while it may be the beginning of a marker, or the end of the round.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._mode = FINAL
        self._begun: set[str] = set()
        self._marked = False
        self._has_modes = False  # a marker has said what is reasoning
        # An end marker came without a start: if text follows, the text so far was reasoning.
        self._ended_alone = False
        self._place = MarkdownPlace()

    def feed(self, text: str) -> list[Delta]:
        """Parse the next fragment and return the deltas that are certain."""
        self._pending += text
        return self._parse(is_end=False)

    def switch(self, *, thinking: bool) -> list[Delta]:
        """Called when the server itself says that reasoning begins or ends here."""
        deltas = self.flush()
        self._mode = ANALYSIS if thinking else FINAL
        self._marked = self._has_modes = True
        return deltas

    def reasoning(self, text: str) -> list[Delta]:
        """Emit reasoning that the server sends in a separate field; text follows it."""
        deltas = self.switch(thinking=False)
        return [*deltas, ReasoningDelta(text)] if text else deltas

    def flush(self, *, calls: bool = False) -> list[Delta]:
        """Emit the buffered text. Called at the end of the round.

        calls: whether tool calls follow the text.
        """
        deltas = self._parse(is_end=True)
        if calls and self._ended_alone:
            deltas.append(self._reclassify())
        return deltas

    def _parse(self, *, is_end: bool) -> list[Delta]:
        deltas: list[Delta] = []
        pending, at = self._pending, 0
        while match := _MARKER.search(pending, at):
            self._emit(pending[at : match.start()], deltas)
            at = match.start()
            if not is_end and self._may_go_on(match):
                break
            self._apply(match, deltas)
            at = match.end()
        end = len(pending) if is_end or match else max(at, _stable_length(pending))
        if not match:
            self._emit(pending[at:end], deltas)
            at = end
        self._pending = pending[at:]
        return deltas

    def _may_go_on(self, match: "re.Match[str]") -> bool:
        """Whether what follows decides about the marker, and is not there yet."""
        rest = match.string[match.start() : match.start() + _MAX_END + 1]
        if match.end() == len(match.string) or rest in _BEGINNINGS:
            return True
        if match[0] not in END_TOKENS or len(rest) > _MAX_END:
            return False
        tail = _after_end(rest)
        return not tail or tail in _BEGINNINGS

    def _apply(self, match: "re.Match[str]", deltas: list[Delta]) -> None:
        marker = match[0]
        rest = match.string[match.end() : match.end() + _MAX_END]
        if marker in END_TOKENS:
            if _after_end(rest) or (marker == "</s>" and "<s>" in self._place.line):
                self._emit(marker, deltas)
            return
        if self._is_quoted(marker, rest[:1]):
            self._emit(marker, deltas)
            return
        mode = MARKERS[marker]
        if mode == FINAL == self._mode and not self._has_modes and FINAL in self._begun:
            self._ended_alone = True
            self._begun.discard(FINAL)
        self._mode = FINAL if mode == KEPT else mode or self._mode
        self._marked, self._has_modes = True, self._has_modes or mode != UNCHANGED
        if mode == KEPT:
            self._emit(marker, deltas)

    def _is_quoted(self, marker: str, following: str) -> bool:
        """Whether the marker is text: in code, in quotes, or a word of a sentence."""
        if self._place.in_quotes(following):
            return True
        if self._mode == ANALYSIS:
            # Reasoning is untidy: backticks and fences that do not close must not hide the answer.
            return False
        is_tag = "|" not in marker
        return self._place.in_code or (is_tag and self._place.in_sentence(following))

    def _emit(self, text: str, deltas: list[Delta]) -> None:
        # Models put blank lines around markers; they belong to neither side.
        if self._marked and self._mode not in self._begun:
            text = text.lstrip()
        if not text:
            return
        self._begun.add(self._mode)
        if self._mode == ANALYSIS:
            self._place.note(text)
            deltas.append(ReasoningDelta(text))
            return
        if self._ended_alone:
            deltas.append(self._reclassify())
        self._place.feed(text)
        deltas.append(TextDelta(text))

    def _reclassify(self) -> TextReclassified:
        self._ended_alone = False
        self._place = MarkdownPlace()
        return TextReclassified()


def _after_end(text: str) -> str:
    """What follows the blanks and end tokens at the beginning of a text."""
    ends = _ENDS.match(text)
    return text[ends.end() :] if ends else text


def _stable_length(pending: str) -> int:
    """Return the length of the text before the first possible beginning of a marker."""
    size = len(pending)
    for start in range(max(0, size - _LONGEST + 1), size):
        if pending[start] in "<[◁" and pending[start:] in _BEGINNINGS:
            return start
    return size
