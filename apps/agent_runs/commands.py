"""Run commands: one run per step, with the conversation locked from the first to the last.

A step that fails or is stopped ends the command. A step that failed because the provider could not
reconnect is retried. Everything runs on the server's event loop.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError

from apps.agents.events import Terminal, TurnFailed, TurnFinished, TurnStopped
from apps.conversations import leases, runner
from apps.conversations.models import CommandRun
from apps.conversations.stream import RunLog
from apps.conversations.types import StartTurn
from apps.conversations.work import database, spawn
from apps.core.errors import CodeinfoError

logger = logging.getLogger("codeinfo.conversations")

pause = asyncio.sleep  # by this name, so that a test can have a clock of its own

RECONNECTING = re.compile(r"Reconnecting\.\.\. \d+/\d+")
ATTEMPTS = 3
FIRST_PAUSE = 0.5  # seconds; each further one is twice as long

Status = CommandRun.Status


@dataclass(frozen=True)
class CommandEnd:
    """The end of a command.

    status: a final `CommandRun.Status`.
    note: `{code, message}`; None if the answer of the last step states the reason.
    """

    status: str
    note: Mapping[str, str] | None = None


@dataclass(eq=False)
class Execution:
    """A running command.

    steps: one request per step.
    log: the run of the present step.
    stopping: set by a Stop or a shutdown; no further step starts.
    closing: the process is shutting down, so the end is INTERRUPTED and not a Stop.
    done: set when the command has ended.
    end: None while it runs.
    """

    steps: Sequence[StartTurn]
    log: RunLog
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    closing: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)
    end: CommandEnd | None = None
    _step_changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_for_next_step(self, log: RunLog) -> None:
        """Return when `log` is no longer the present step's, or the command has ended."""
        while self.log is log and not self.done.is_set():
            await self._step_changed.wait()

    def start_step(self, log: RunLog) -> None:
        """Switch to the run of the next step, or of a retry."""
        self.log = log
        self._wake()

    def finish(self, end: CommandEnd) -> None:
        self.end = end
        self.done.set()
        self._wake()

    def _wake(self) -> None:
        self._step_changed.set()
        self._step_changed = asyncio.Event()

    def stop(self) -> None:
        """Stop the present step and start no other."""
        self.stopping.set()
        runner.stop(self.log)

    @property
    def id(self) -> str:
        agent = self.steps[0].agent
        return agent.command_run if agent else ""

    @property
    def context(self) -> dict[str, Any]:
        """Fields for log entries; no texts."""
        return {"conversationId": self.log.conversation_id, "command": self.log.command}


live_executions: set[Execution] = set()


async def start(steps: Sequence[StartTurn]) -> Execution:
    """Start a command. Returns when its first step runs.

    Raises what `runner.start` raises; then nothing has changed. If the caller is cancelled, the
    command either does not exist or continues.
    """
    return await asyncio.shield(spawn(_begin(steps)))


async def shutdown() -> None:
    """End every command and every other live run of this process. Returns when all are saved."""
    executions = list(live_executions)
    for execution in executions:
        execution.closing = True
        execution.stopping.set()
    await runner.shutdown()
    await asyncio.gather(*(execution.done.wait() for execution in executions))


async def _begin(steps: Sequence[StartTurn]) -> Execution:
    execution = Execution(steps, await runner.start(steps[0]))
    live_executions.add(execution)
    spawn(_supervise(execution))
    return execution


async def _supervise(execution: Execution) -> None:
    end = CommandEnd(Status.FAILED, leases.INTERRUPTED)
    try:
        end = await _run(execution)
    finally:
        await _release(execution, end)
        live_executions.discard(execution)
        execution.finish(end)


async def _run(execution: Execution) -> CommandEnd:
    """Run every step; the first one has started."""
    for number, step in enumerate(execution.steps):
        if number and (refusal := await _next(execution, step)):
            return refusal
        end = await _answer(execution, step)
        if not isinstance(end, TurnFinished):
            stopped = isinstance(end, TurnStopped)
            return CommandEnd(Status.STOPPED if stopped else Status.FAILED)
    return CommandEnd(Status.OK)


async def _next(execution: Execution, step: StartTurn) -> CommandEnd | None:
    """Start a step. Returns None, or the end of the command if it must not start."""
    if execution.stopping.is_set() or not await database(leases.may_continue, execution.id):
        return _stopped(execution)
    try:
        execution.start_step(await runner.start(step))
    except CodeinfoError as error:
        if error.code == "COMMAND_STOPPED":
            return _stopped(execution)
        return CommandEnd(Status.FAILED, {"code": error.code, "message": error.message})
    if execution.stopping.is_set():
        runner.stop(execution.log)
    return None


def _stopped(execution: Execution) -> CommandEnd:
    if execution.closing:
        return CommandEnd(Status.FAILED, leases.INTERRUPTED)
    return CommandEnd(Status.STOPPED, leases.STOPPED)


async def _answer(execution: Execution, step: StartTurn) -> Terminal:
    """The end of the present step, after retries of failures to reconnect."""
    for attempt in range(1, ATTEMPTS):
        end = await _wait_for_end(execution.log)
        if not _reconnecting(end):
            return end
        await _sleep_unless_stopped(execution, FIRST_PAUSE * 2 ** (attempt - 1))
        if await _next(execution, step):
            return end
        logger.info("command step tried again", extra={"context": execution.context})
    return await _wait_for_end(execution.log)


async def _wait_for_end(log: RunLog) -> Terminal:
    while not log.finished:
        await log.wait(log.seq)
    return log.end


def _reconnecting(end: Terminal) -> bool:
    return isinstance(end, TurnFailed) and bool(RECONNECTING.fullmatch(end.message.strip()))


async def _sleep_unless_stopped(execution: Execution, seconds: float) -> None:
    """Sleep, or return at a Stop."""
    waits = {spawn(pause(seconds)), spawn(execution.stopping.wait())}
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _release(execution: Execution, end: CommandEnd) -> None:
    try:
        await database(leases.end, execution.id, end.status, end.note)
    except DatabaseError as error:
        # The next run in the conversation finds the lock stale (`leases.stale`).
        logger.warning("command not ended: %s", error, extra={"context": execution.context})
    logger.info("command finished", extra={"context": execution.context | {"status": end.status}})
