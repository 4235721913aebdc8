"""Runs commands: step after step, each an ordinary run, the conversation held from first to last.

A step that fails or is stopped is the last. A step that failed only because the provider could not
reconnect is tried again. All of it belongs to the server's event loop.
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
    """How a command ended; `note` says why, where no step's answer does."""

    status: str
    note: Mapping[str, str] | None = None


@dataclass(eq=False)
class Execution:
    """A command under way. `log` is the run of its present step; `done` is set when it is over."""

    steps: Sequence[StartTurn]
    log: RunLog
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    closing: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)
    end: CommandEnd | None = None
    _step_changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait_for_next_step(self, log: RunLog) -> None:
        """Return once `log` is no longer the present step's, or the command is over."""
        while self.log is log and not self.done.is_set():
            await self._step_changed.wait()

    def start_step(self, log: RunLog) -> None:
        """Go on to another step, or to another attempt at this one."""
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
        """End the present step and begin no other."""
        self.stopping.set()
        runner.stop(self.log)

    @property
    def id(self) -> str:
        agent = self.steps[0].agent
        return agent.command_run if agent else ""

    @property
    def context(self) -> dict[str, Any]:
        """What logs may tell of it."""
        return {"conversationId": self.log.conversation_id, "command": self.log.command}


_executions: set[Execution] = set()


async def start(steps: Sequence[StartTurn]) -> Execution:
    """Begin a command: its first step runs when this returns.

    Raises what `runner.start` raises; then nothing has changed. A caller that is cancelled
    meanwhile leaves either nothing or a whole command behind.
    """
    return await asyncio.shield(spawn(_begin(steps)))


async def shutdown() -> None:
    """End every command and every other live run of this process; returns when all is saved."""
    executions = list(_executions)
    for execution in executions:
        execution.closing = True
        execution.stopping.set()
    await runner.shutdown()
    await asyncio.gather(*(execution.done.wait() for execution in executions))


async def _begin(steps: Sequence[StartTurn]) -> Execution:
    execution = Execution(steps, await runner.start(steps[0]))
    _executions.add(execution)
    spawn(_supervise(execution))
    return execution


async def _supervise(execution: Execution) -> None:
    end = CommandEnd(Status.FAILED, leases.INTERRUPTED)
    try:
        end = await _run(execution)
    finally:
        await _release(execution, end)
        _executions.discard(execution)
        execution.finish(end)


async def _run(execution: Execution) -> CommandEnd:
    """Every step to its end, the first of which has begun."""
    for number, step in enumerate(execution.steps):
        if number and (refusal := await _next(execution, step)):
            return refusal
        end = await _answer(execution, step)
        if not isinstance(end, TurnFinished):
            stopped = isinstance(end, TurnStopped)
            return CommandEnd(Status.STOPPED if stopped else Status.FAILED)
    return CommandEnd(Status.OK)


async def _next(execution: Execution, step: StartTurn) -> CommandEnd | None:
    """Begin a step, or say why it was not begun."""
    if execution.stopping.is_set() or not await database(leases.wanted, execution.id):
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
    """The end of the present step, after further attempts where it could only not reconnect."""
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
    """Wait, but not beyond a Stop."""
    waits = {spawn(pause(seconds)), spawn(execution.stopping.wait())}
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


async def _release(execution: Execution, end: CommandEnd) -> None:
    try:
        await database(leases.end, execution.id, end.status, end.note)
    except DatabaseError as error:
        # Whoever asks for the conversation next finds the hold abandoned.
        logger.warning("command not ended: %s", error, extra={"context": execution.context})
    logger.info("command finished", extra={"context": execution.context | {"status": end.status}})
