"""Run answers: one task each, which outlives the request or socket that started it.

    start  → rows (lock, question) → RunLog → task: agents.loop → log; saver: parts, heartbeat, Stop
    end    → the row is saved (lock released) → the terminal event is logged → readers end

Everything runs on the server's event loop. Rows are accessed through `work.database`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec

from django.db import DatabaseError, Error

from apps.agents import loop
from apps.agents.events import Terminal, ThreadNamed, TurnFailed, TurnStopped, Warned
from apps.agents.messages import Message
from apps.agents.metering import Meter
from apps.agents.providers import registry
from apps.agents.providers.base import ModelRequest, Provider
from apps.agents.stream_scheduler import stream_scheduler
from apps.agents.tools import toolset
from apps.conversations import leases, memory, recovery, rows, scope
from apps.conversations.stream import RunLog, live_runs
from apps.conversations.types import AgentSettings, Outcome, StartedTurn, StartTurn, Store
from apps.conversations.work import database, spawn
from apps.core.concurrency.hub import hub
from apps.core.config import config
from apps.core.errors import CodeinfoError, Unavailable
from apps.core.monitoring.metrics import TOKENS, TURNS
from apps.core.monitoring.telemetry import span
from apps.core.system import disk
from apps.logs.context import bind_log_context
from apps.tools.tool import Tool

logger = logging.getLogger("codeinfo.conversations")

pause = asyncio.sleep  # by this name, so that a test can have a clock of its own

P = ParamSpec("P")

TICK_SECONDS = 0.5  # at most two writes a second; the latency of a Stop from another process
# Of all runs together. With many runs each is written less often, so that the single database
# thread stays free for the next question.
MAX_TICKS_PER_SECOND = 20
MAX_TICK_SECONDS = 5.0
HEARTBEAT_SECONDS = 5.0
# How long to wait for a provider after a Stop.
STOP_SECONDS = 5.0
# Seconds between attempts to save an end. Each attempt waits for a locked database, too.
SAVE_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0, 5.0, 5.0)

INTERNAL_ERROR = TurnFailed("INTERNAL", "Something went wrong here; the log has the details.")
NOT_SAVED = TurnFailed("DATABASE_UNAVAILABLE", "The answer could not be saved.")


@dataclass(eq=False)
class Run:
    """A live run.

    log: its event log.
    store: `rows`, or `memory` while the database is unavailable.
    provider, request: what the loop runs.
    meter: token counts and times of its rounds.
    stop: set to stop the run.
    done: set when its end is logged.
    closing: the process is shutting down, so the end is INTERRUPTED and not a Stop.
    ended: later events of the loop are ignored.
    """

    log: RunLog
    store: Store
    provider: Provider
    request: ModelRequest
    meter: Meter = field(default_factory=Meter)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)
    closing: bool = False
    ended: bool = False

    @property
    def context(self) -> dict[str, Any]:
        """Fields for log entries; no texts."""
        log = self.log
        return {
            "conversationId": log.conversation_id,
            "inflightId": log.inflight_id,
            "turnId": log.turn_id,
            "provider": log.provider,
            "model": log.model,
        }


# Live runs by turn id.
_runs: dict[str, Run] = {}


async def start(request: StartTurn) -> RunLog:
    """Start a run and return its live log.

    Raises InvalidInput UNSUPPORTED_PROVIDER or Unavailable PROVIDER_UNAVAILABLE (details.provider)
    before anything is created; then what `rows.start_turn` raises. If the caller is cancelled, the
    run either does not exist or continues.
    """
    stream_scheduler.prioritise(request.conversation_id)
    provider = registry.get_provider(request.provider)
    availability = await provider.availability()
    if not availability.available:
        raise Unavailable(
            availability.reason or f"{provider.label} is not available.",
            code="PROVIDER_UNAVAILABLE",
            details={"provider": provider.id},
        )
    _tools(request)  # raises before anything is created
    has_tools = availability.tools_available
    return await asyncio.shield(spawn(_begin(request, provider, has_tools=has_tools)))


def _tools(request: StartTurn) -> tuple[Tool, ...]:
    """The tools of an answer. Raises InvalidInput FORBIDDEN_REPOSITORY."""
    allowed = request.agent.tools if request.agent else None
    return toolset(request.repositories, allowed, request.areas or ())


async def _begin(request: StartTurn, provider: Provider, *, has_tools: bool) -> RunLog:
    store, started, warning = await _started(request)
    if request.areas is None and request.agent is None:
        request = replace(request, areas=scope.stored(started.conversation.flags))
    tools = _tools(request) if has_tools else ()
    log = RunLog(
        conversation_id=request.conversation_id,
        inflight_id=started.answer.inflight_id,
        turn_id=str(started.answer.pk),
        user_text=started.message,
        user_turn_id=str(started.question.pk),
        provider=provider.id,
        model=request.model,
        started_at=started.answer.created_at,
        user_turn_at=started.question.created_at,
        command=request.command,
        forks=started.forks,
        stored=store is rows,
        owner_id=started.conversation.owner_id,
    )
    run = Run(log, store, provider, _request(request, started, provider, tools))
    bind_log_context(
        conversationId=log.conversation_id,
        turnId=log.turn_id,
        provider=provider.id,
        model=request.model,
        baseUrl=await provider.origin(),
    )
    if warning is not None:
        log.append(warning)
    _runs[log.turn_id] = run
    live_runs.add(log)
    spawn(_measured(run))
    hub.notify(f"conversation:{log.conversation_id}")
    logger.info("chat run started", extra={"context": run.context | {"source": request.source}})
    return log


async def _started(request: StartTurn) -> tuple[Store, StartedTurn, Warned | None]:
    """Take the run lock in the database, or in memory while the database is unavailable, with a
    warning for the clients."""
    live = live_runs.of(request.conversation_id)
    if live is not None and not live.stored:
        raise leases.in_progress()
    try:
        await database(memory.write_deferred_end, request.conversation_id)
        stored = memory.without_unsaved(request)
        started = await database(rows.start_turn, stored, recovery.owner())
    except Error as error:
        if not await database(memory.cannot_store, error):
            raise
        logger.warning("the database cannot be written, a chat run is not stored: %s", error)
        await database(memory.load_history, request)
        warning = Warned(f"Not stored: {memory.reason(error)}.")
        return memory, memory.start_turn(request, recovery.owner()), warning
    memory.discard(request.conversation_id)
    return rows, started, None


def _request(
    turn: StartTurn, started: StartedTurn, provider: Provider, tools: Sequence[Tool]
) -> ModelRequest:
    agent = turn.agent or AgentSettings("")
    messages = [
        Message("system", agent.system_prompt or turn.system_prompt or provider.system_prompt),
        *started.history,
        Message("user", started.message),
    ]
    return ModelRequest(
        turn.model,
        messages,
        tools,
        flags=dict(started.conversation.flags),
        repositories=turn.repositories,
        areas=turn.areas or (),
        home=agent.home,
        folder=agent.folder,
        rights=agent.rights,
        config=agent.config,
        conversation_id=turn.conversation_id,
    )


async def cancel(conversation_id: str, inflight_id: str | None = None) -> bool:
    """Stop the run of a conversation in any process. Returns False if there is none.

    With `inflight_id`, stop only that run. Returns at once; the end is an event of the run's log.
    """
    log = live_runs.visible(conversation_id)
    if log is not None and inflight_id in (None, log.inflight_id):
        if log.command:
            await database(leases.request_cancel, conversation_id)
        stop(log)
        return True
    return await database(rows.request_cancel, conversation_id, inflight_id)


def stop(log: RunLog) -> None:
    """Stop a run of this process. No effect on a run that has ended."""
    run = _runs.get(log.turn_id)
    if run is not None:
        run.stop.set()


async def shutdown() -> None:
    """End every live run of this process as INTERRUPTED. Returns when their parts are saved."""
    runs = list(_runs.values())
    for run in runs:
        run.closing = True
        run.stop.set()
    await asyncio.gather(*(run.done.wait() for run in runs))


async def _measured(run: Run) -> None:
    """Supervise a run within one trace span, the parent of its rounds and tool calls; count it."""
    provider = run.log.provider
    with span("chat turn", provider=provider, turn=run.log.turn_id) as step:
        await _supervise(run)
        end = Outcome.of(run.log.end)
        TURNS.labels(provider, end.status).inc()
        step.set(status=end.status)
        if end.error:
            step.fail(end.error["code"])
        for kind, count in (end.usage or {}).items():
            TOKENS.labels(provider, kind).inc(count)
            step.set(**{kind: count})


async def _supervise(run: Run) -> None:
    """Supervise a run until it ends with one terminal event and one saved end."""
    answer = spawn(_answer(run))
    saver = spawn(_save_periodically(run))
    stopped = spawn(run.stop.wait())
    try:
        await asyncio.wait({answer, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            await asyncio.wait({answer}, timeout=STOP_SECONDS)
        run.ended = True
        saver.cancel()
        # A pending write of the saver must not follow the end.
        await asyncio.wait({saver})
        await _finish(run, _final_event(run, answer))
    finally:
        for task in (answer, saver, stopped):
            task.cancel()
        _runs.pop(run.log.turn_id, None)
        live_runs.remove(run.log)
        if not run.log.finished:
            # Readers wait for a terminal event, whatever failed here.
            run.log.append(INTERNAL_ERROR)
        run.done.set()
        hub.notify(f"conversation:{run.log.conversation_id}")


async def _answer(run: Run) -> Terminal:
    """Log the events of the loop. Returns the terminal event, which is logged after it is saved."""
    try:
        events = loop.run(run.provider, run.request, config().max_tool_rounds, run.meter)
        async with aclosing(events):
            async for event in events:
                if run.ended:
                    break
                if isinstance(event, Terminal):
                    return event
                if isinstance(event, ThreadNamed):
                    # At once: without it the next question starts another thread.
                    ids = run.log.conversation_id, run.log.turn_id
                    await _save(run, run.store.name_thread, *ids, event.thread_id)
                run.log.append(event)
    except CodeinfoError as error:
        retryable = isinstance(error, Unavailable) and error.retryable
        return TurnFailed(error.code, error.message, retryable)
    except Exception:
        logger.exception("chat run broke", extra={"context": run.context})
        return INTERNAL_ERROR
    return TurnFailed("INTERNAL", "The answer broke off without an end.")


def _final_event(run: Run, answer: "asyncio.Task[Terminal]") -> Terminal:
    """The terminal event of a run, with the usage and timing of its rounds."""
    event: Terminal = recovery.INTERRUPTED if run.closing else TurnStopped()
    if answer.done() and not answer.cancelled():
        event = answer.result()
    if event.timing is not None:
        return event
    usage, timing = run.meter.read()
    return replace(event, usage=usage, timing=timing)


async def _finish(run: Run, event: Terminal) -> None:
    """Save the end, then log it: readers of the log find the final row."""
    log = run.log
    log.transcript.apply(event)
    outcome = Outcome.of(event, log.snapshot().parts)
    ids = log.conversation_id, log.turn_id
    problem = await _save(run, run.store.finish_turn, *ids, outcome)
    if problem is not None and await database(memory.cannot_store, problem):
        memory.defer_end(*ids, outcome)
        log.append(Warned(f"Not stored yet: {memory.reason(problem)}."))
    elif problem is not None:
        event = replace(NOT_SAVED, usage=event.usage, timing=event.timing)
    live_runs.remove(log)
    log.append(event)
    logger.info(
        "chat run finished",
        extra={
            "context": run.context
            | {"status": outcome.status, "code": (outcome.error or {}).get("code")}
            | {"events": log.seq, "seconds": run.meter.seconds}
        },
    )


async def _save(
    run: Run, save: Callable[P, None], *args: P.args, **kwargs: P.kwargs
) -> DatabaseError | None:
    """Call `save` until it succeeds or all attempts fail. Returns the last error, or None.

    Does not retry if the disk is full.
    """
    problem: DatabaseError | None = None
    for seconds in (*SAVE_PAUSES, None):
        try:
            await database(save, *args, **kwargs)
        except DatabaseError as error:
            logger.warning("chat run not saved: %s", error, extra={"context": run.context})
            problem = error
        else:
            return None
        if disk.is_full(problem):
            break
        if seconds is not None:
            await pause(seconds)
    return problem


async def _save_periodically(run: Run) -> None:
    """Save new parts, write heartbeats, and detect a Stop from another process."""
    saved, heartbeat_at = 0, time.monotonic()
    while True:
        await pause(min(max(TICK_SECONDS, len(_runs) / MAX_TICKS_PER_SECOND), MAX_TICK_SECONDS))
        snapshot = run.log.snapshot()
        changed = snapshot.seq > saved
        try:
            if changed or time.monotonic() - heartbeat_at >= HEARTBEAT_SECONDS:
                parts = snapshot.parts if changed else None
                may_continue = await database(run.store.keep_alive, run.log.turn_id, parts)
                saved, heartbeat_at = snapshot.seq, time.monotonic()
            else:
                may_continue = await database(run.store.may_continue, run.log.turn_id)
        except DatabaseError as error:
            logger.warning("chat run not kept: %s", error, extra={"context": run.context})
            continue
        if not may_continue:
            run.stop.set()
            return
