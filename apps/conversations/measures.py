"""Traces and metrics of a run."""

from collections.abc import Awaitable

from apps.conversations.stream import RunLog
from apps.conversations.types import Outcome
from apps.core.monitoring.metrics import TOKENS, TURNS
from apps.core.monitoring.telemetry import span


async def measured(log: RunLog, run: Awaitable[None]) -> None:
    """Await a run within one trace span, the parent of its rounds and tool calls."""
    with span("chat turn", provider=log.provider, turn=log.turn_id) as step:
        await run
        end = Outcome.of(log.end)
        TURNS.labels(log.provider, end.status).inc()
        step.set(status=end.status)
        if end.error:
            step.fail(end.error["code"])
        for kind, count in (end.usage or {}).items():
            TOKENS.labels(log.provider, kind).inc(count)
            step.set(**{kind: count})
