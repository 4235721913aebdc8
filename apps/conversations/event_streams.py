"""An answer as server-sent events (WHATWG HTML): from its log, or from its row.

The row is read if another process makes the answer, or made it, or the log is no longer in memory.
A row has no numbered events, so a `snapshot` with all that it holds replaces what a reader has.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator

from apps.conversations import queries, recovery, runner
from apps.conversations.branches import followed
from apps.conversations.models import Turn
from apps.conversations.renderers import sse
from apps.conversations.renderers.json import inflight
from apps.conversations.stream import RunLog, live_runs
from apps.conversations.work import database
from apps.core.values.times import wire_time

logger = logging.getLogger("codeinfo.conversations")

pause = asyncio.sleep  # by this name, so that a test can have a clock of its own

HEARTBEAT_SECONDS = 15.0
# Poll interval for a row that another process writes.
FOREIGN_SECONDS = 1.0


async def newest(conversation_id: str) -> RunLog | Turn | None:
    """The newest answer of a conversation: the log of this process, else the row; None: none yet.

    Raises NotFound if the current user may not see the conversation.
    """
    live = live_runs.visible(conversation_id)
    if live is not None:
        return live
    ended = live_runs.ended(conversation_id)
    if ended is not None and not ended.stored:
        return ended
    row = await database(_newest_row, conversation_id)
    if ended is not None and row is not None and ended.turn_id == str(row.pk):
        return ended
    return row


def _newest_row(conversation_id: str) -> Turn | None:
    queries.get(conversation_id)
    recovery.recover_stale(conversation_id)
    answers = followed(conversation_id).filter(role=Turn.Role.ASSISTANT)
    return answers.select_related("conversation").order_by("-created_at", "-id").first()


def turn_id_of(source: RunLog | Turn) -> str:
    return source.turn_id if isinstance(source, RunLog) else str(source.pk)


def has_ended(source: RunLog | Turn, after: int) -> bool:
    """Whether an answer has ended with the frame numbered `after`, as far as its log tells."""
    return isinstance(source, RunLog) and source.finished and after >= sse.last_number(source)


async def of_log(
    log: RunLog, after: int = 0, *, ends_with_stream: bool = False
) -> AsyncIterator[str]:
    """The frames of a run numbered above `after`, with a heartbeat first and after
    HEARTBEAT_SECONDS without events."""
    yield sse.HEARTBEAT
    if not log.finished and after > log.seq:
        after = 0  # not a number of this run
    # The terminal event may have a second message, so it is rendered again.
    position = min(after, log.seq - 1) if log.finished else after
    try:
        while not (log.finished and position == log.seq):
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await log.wait(position)
            except TimeoutError:
                yield sse.HEARTBEAT
            new, before = log.events[position:], position
            position += len(new)
            if frames := "".join(sse.frames(log, new, before, after)):
                yield frames
    finally:
        if position < log.seq or not log.finished:
            _on_disconnect(log, ends_with_stream)


def _on_disconnect(log: RunLog, ends_with_stream: bool) -> None:
    context = {
        "reason": "client_disconnect",
        "conversationId": log.conversation_id,
        "inflightId": log.inflight_id,
        "stopped": ends_with_stream,
    }
    logger.info("chat stream left", extra={"context": context})
    if ends_with_stream:
        runner.stop(log)


async def of_row(turn: Turn) -> AsyncIterator[str]:
    """The frames of a stored answer: a snapshot whenever its row has grown, then its end."""
    yield sse.HEARTBEAT
    yield _snapshot(turn)
    sent, last_sent_at = turn.parts, time.monotonic()
    while turn.status == Turn.Status.RUNNING:
        await pause(FOREIGN_SECONDS)
        fresh = await database(_read, turn)
        if fresh is None:
            yield sse.frame({"type": "error", "message": "The conversation was deleted."})
            return
        turn = fresh
        if turn.parts != sent:
            yield _snapshot(turn)
            sent, last_sent_at = turn.parts, time.monotonic()
        elif time.monotonic() - last_sent_at >= HEARTBEAT_SECONDS:
            yield sse.HEARTBEAT
            last_sent_at = time.monotonic()
    yield "".join(sse.stored_end(turn))


def _read(turn: Turn) -> Turn | None:
    """The present row of an answer, which ends here if its process is dead."""
    recovery.recover_stale(turn.conversation_id)
    return Turn.objects.select_related("conversation").filter(pk=turn.pk).first()


def _snapshot(turn: Turn) -> str:
    """All that a row holds. Without an id: a reader that comes back gets another one."""
    at = wire_time(turn.created_at)
    state = inflight(turn.inflight_id, turn.parts, at, 0, turn.command)
    return sse.frame({"type": "snapshot", "inflight": state})
