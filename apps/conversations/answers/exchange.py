"""A question and its answer as the page draws them, from rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.conversations.models import Turn
from apps.conversations.parts import Part, content


@dataclass(frozen=True)
class Exchange:
    """`id` is the answer's turn, or the question's where there is no answer."""

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
    asked: bool = True
    answered: bool = True

    @property
    def running(self) -> bool:
        return self.status == Turn.Status.RUNNING

    @property
    def answer_text(self) -> str:
        return content(self.parts)


def exchanges_of(turns: Iterable[Turn]) -> list[Exchange]:
    """Turns, oldest first, paired: each question with the answer that follows it."""
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
        asked=question is not None,
    )


def _unanswered(question: Turn) -> Exchange:
    return Exchange(
        id=str(question.pk),
        conversation_id=question.conversation_id,
        question=content(question.parts),
        at=question.created_at,
        provider=question.provider,
        model=question.model,
        answered=False,
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
