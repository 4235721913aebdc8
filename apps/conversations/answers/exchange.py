"""A question and its answer, as the page shows them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.conversations.models import Turn
from apps.conversations.parts import Part, content
from apps.conversations.scope import chips, stored


@dataclass(frozen=True)
class Versions:
    """The versions of a question or of an answer: the turns with one parent, in order.

    number: of the one that is shown, from 1.
    previous, next: turn ids; "" where there is none.
    """

    number: int
    count: int
    previous: str
    next: str

    @classmethod
    def of(cls, turn: Turn) -> "Versions | None":
        """None for a turn that is the only one."""
        ids = list(map(str, turn.siblings))
        if len(ids) < 2:
            return None
        at = ids.index(str(turn.pk))
        return cls(at + 1, len(ids), ids[at - 1] if at else "", "".join(ids[at + 1 : at + 2]))


@dataclass(frozen=True)
class Exchange:
    """A question and its answer.

    id: turn id of the answer, or of the question if there is no answer.
    at: time of that turn.
    parts, error, usage, timing, command, rating: of the answer (`models.Turn`).
    warnings: of a live run.
    question_id: turn id of the question; "" without one. parent: that of the turn before it,
        "" for a first one; None while the turn is not saved.
    scope: the chips of what the question is limited to, as JSON: `[[value, label], …]`.
    questions, answers: the versions of the question and of the answer.
    has_question, has_answer: False if that turn does not exist.
    """

    id: str
    conversation_id: str
    question: str
    at: datetime
    status: str = Turn.Status.OK
    parts: Sequence[Part] = ()
    error: Mapping[str, str] | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    timing: Mapping[str, float] = field(default_factory=dict)
    provider: str = ""
    model: str = ""
    command: Mapping[str, Any] | None = None
    rating: int | None = None
    warnings: Sequence[str] = ()
    question_id: str = ""
    parent: str | None = None
    scope: str = "[]"
    questions: Versions | None = None
    answers: Versions | None = None
    has_question: bool = True
    has_answer: bool = True

    @property
    def running(self) -> bool:
        return self.status == Turn.Status.RUNNING

    @property
    def may_scroll(self) -> bool:
        """Whether the question may be higher than the six lines of its box on a phone."""
        return len(self.question) > 120 or self.question.count("\n") > 2

    @property
    def rating_label(self) -> str:
        return str(Turn.Rating(self.rating).label) if self.rating else ""

    @property
    def answer_text(self) -> str:
        return content(self.parts)


def exchanges_of(turns: Iterable[Turn]) -> list[Exchange]:
    """Pair each question with the answer that follows it. `turns`: oldest first."""
    exchanges: list[Exchange] = []
    question: Turn | None = None
    for turn in turns:
        if turn.role == Turn.Role.ASSISTANT:
            exchanges.append(exchange_of(question, turn))
            question = None
        elif turn.role == Turn.Role.USER:
            if question is not None:
                exchanges.append(_unanswered(question))
            question = turn
    return [*exchanges, _unanswered(question)] if question is not None else exchanges


def exchange_of(question: Turn | None, answer: Turn) -> Exchange:
    return Exchange(
        id=str(answer.pk),
        conversation_id=answer.conversation_id,
        at=answer.created_at,
        status=answer.status,
        parts=answer.parts,
        error=answer.error,
        usage=answer.usage or {},
        timing=answer.timing or {},
        provider=answer.provider,
        model=answer.model,
        command=answer.command,
        rating=answer.rating,
        answers=Versions.of(answer),
        **(_of_question(question) if question else {"question": "", "has_question": False}),
    )


def _unanswered(question: Turn) -> Exchange:
    return Exchange(
        id=str(question.pk),
        conversation_id=question.conversation_id,
        at=question.created_at,
        provider=question.provider,
        model=question.model,
        has_answer=False,
        **_of_question(question),
    )


def _of_question(question: Turn) -> dict[str, Any]:
    return {
        "question": content(question.parts),
        "question_id": str(question.pk),
        "parent": str(question.parent or ""),
        "scope": json.dumps([chip[:2] for chip in chips(stored(question.flags))]),
        "questions": Versions.of(question),
    }


def usage_line(usage: Mapping[str, Any]) -> str:
    """`Tokens: in 6,214 · out 412 · total 6,626 (cached 4,096)`; nothing without counts."""
    words = (("in", "inputTokens"), ("out", "outputTokens"), ("total", "totalTokens"))
    known = [f"{word} {usage[key]:,}" for word, key in words if usage.get(key) is not None]
    if not known:
        return ""
    cached = usage.get("cachedInputTokens")
    return "Tokens: " + " · ".join(known) + (f" (cached {cached:,})" if cached else "")


def timing_line(timing: Mapping[str, Any]) -> str:
    """`Time: 9.84s · Rate: 42 tok/s`."""
    lines = []
    if timing.get("totalTimeSec"):
        lines.append(f"Time: {timing['totalTimeSec']:.2f}s")
    if timing.get("tokensPerSecond"):
        lines.append(f"Rate: {timing['tokensPerSecond']:.0f} tok/s")
    return " · ".join(lines)
