"""A question and its answer, as the page shows them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.conversations.models import Turn
from apps.conversations.parts import Part, content


@dataclass(frozen=True)
class Exchange:
    """A question and its answer.

    id: turn id of the answer, or of the question if there is no answer.
    at: time of that turn.
    parts, error, usage, timing, command: of the answer (`models.Turn`).
    warnings: of a live run.
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
    warnings: Sequence[str] = ()
    has_question: bool = True
    has_answer: bool = True

    @property
    def running(self) -> bool:
        return self.status == Turn.Status.RUNNING

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
        question=content(question.parts) if question else "",
        at=answer.created_at,
        status=answer.status,
        parts=answer.parts,
        error=answer.error,
        usage=answer.usage or {},
        timing=answer.timing or {},
        provider=answer.provider,
        model=answer.model,
        command=answer.command,
        has_question=question is not None,
    )


def _unanswered(question: Turn) -> Exchange:
    return Exchange(
        id=str(question.pk),
        conversation_id=question.conversation_id,
        question=content(question.parts),
        at=question.created_at,
        provider=question.provider,
        model=question.model,
        has_answer=False,
    )


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
