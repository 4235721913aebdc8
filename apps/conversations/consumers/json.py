"""`/ws`: the JSON protocol of docs/contract.md §2.5.

Every subscription is a task. It sends the events of a run's log, so that none is lost or repeated,
or the rows that the hub reports as changed.
"""

import asyncio
import itertools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from apps.conversations import queries, runner, wire
from apps.conversations.renderers.json import (
    Frame,
    RunFrames,
    frame,
    not_inflight,
)
from apps.conversations.stream import RunLog, live_runs
from apps.core.concurrency.hub import hub
from apps.core.errors import CodeinfoError, NotFound
from apps.core.principal import current
from apps.index import queries as ingest
from apps.index.models import IngestRun
from apps.ingest.serializers import status_wire

logger = logging.getLogger("codeinfo.conversations")

POLICY_VIOLATION, TOO_BIG, SERVER_FAILED = 1008, 1009, 1011
MAX_FRAME = 64 * 1024  # bytes
MAX_SUBSCRIPTIONS = 200
# At most 20 batches of deltas, and 5 states of an ingest, a second.
DELTA_SECONDS, INGEST_SECONDS = 0.05, 0.2

# The sequence numbers of the sidebar increase across reconnects and restarts, since clients ignore
# numbers that are not above their last.
_sidebar_numbers = itertools.count(int(time.time() * 1000))


class BadFrame(Exception):
    """An invalid frame. It closes the websocket; the text is the reason."""


class JsonConsumer(AsyncWebsocketConsumer):
    async def connect(self) -> None:
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.ingest_numbers = itertools.count(1)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        for task in getattr(self, "tasks", {}).values():
            task.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        raw = text_data.encode() if text_data is not None else (bytes_data or b"")
        if len(raw) > MAX_FRAME:
            await self.close(code=TOO_BIG, reason="frame too large")
            return
        try:
            message = read(raw)
            handle = HANDLERS.get(message["type"])
            if handle is not None:
                await handle(self, message)
        except BadFrame as error:
            await self.close(code=POLICY_VIOLATION, reason=str(error))

    async def send_frame(self, message: Frame) -> None:
        await self.send(text_data=json.dumps(message, allow_nan=False))

    # Subscriptions ------------------------------------------------------------------------

    def follow(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start or restart a subscription. Raises BadFrame above MAX_SUBSCRIPTIONS."""
        self.unfollow(name)
        if len(self.tasks) >= MAX_SUBSCRIPTIONS:
            raise BadFrame(f"at most {MAX_SUBSCRIPTIONS} subscriptions")
        self.tasks[name] = asyncio.create_task(self._guarded(work()))

    def unfollow(self, name: str) -> None:
        task = self.tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except* (DatabaseError, CodeinfoError) as errors:
            # The client reconnects and subscribes again.
            logger.warning("websocket subscription failed: %s", errors.exceptions[0])
            await self.close(code=SERVER_FAILED, reason="try again")

    async def follow_conversation(self, conversation_id: str) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_runs(conversation_id))
            group.create_task(self._follow_cancels(conversation_id))

    async def _follow_cancels(self, conversation_id: str) -> None:
        """Report every request to cancel a run that is not there, whoever sent it."""
        with hub.subscribe(_cancels_of(conversation_id)) as changes:
            async for inflight_id in changes:
                await self.send_frame(not_inflight(conversation_id, inflight_id))

    async def _follow_runs(self, conversation_id: str) -> None:
        with live_runs.follow(conversation_id) as runs:
            log = live_runs.visible(conversation_id)
            if log is not None:
                now = log.snapshot()
                await self.send_frame(RunFrames(log).snapshot(now))
                await self._follow_run(log, now.seq)
            while True:
                begun = await runs.get()
                for opening in RunFrames(begun).opening():
                    await self.send_frame(opening)
                await self._follow_run(begun, 0)

    async def _follow_run(self, log: RunLog, after: int) -> None:
        frames = RunFrames(log)
        while not (log.finished and after == log.seq):
            await log.wait(after)
            new = log.events[after:]
            for message in frames.events(new, after):
                await self.send_frame(message)
            after += len(new)
            await asyncio.sleep(DELTA_SECONDS)

    async def follow_sidebar(self) -> None:
        with hub.subscribe(queries.topic_of(current())) as changes:
            async for conversation_id in changes:
                await self.send_frame(await database_sync_to_async(_sidebar)(conversation_id))

    async def follow_ingest(self) -> None:
        with hub.subscribe("ingest") as changes:
            run = await database_sync_to_async(ingest.active_run)()
            await self._send_ingest("ingest_snapshot", run)
            async for run_id in changes:
                run = await database_sync_to_async(IngestRun.objects.filter(pk=run_id).first)()
                if run is not None:
                    await self._send_ingest("ingest_update", run)
                await asyncio.sleep(INGEST_SECONDS)

    async def _send_ingest(self, kind: str, run: IngestRun | None) -> None:
        status = status_wire(run) if run is not None else None
        await self.send_frame(frame(kind, next(self.ingest_numbers), status=status))


def _sidebar(conversation_id: str) -> Frame:
    seq = next(_sidebar_numbers)
    try:
        row = queries.get(conversation_id)
    except NotFound:
        return frame("conversation_delete", seq, conversationId=conversation_id)
    return frame("conversation_upsert", seq, conversation=wire.conversation(row))


# Messages of the client ----------------------------------------------------------------------


def read(raw: bytes) -> dict[str, Any]:
    """Parse a frame and check its envelope. Raises BadFrame."""
    try:
        message = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadFrame("malformed JSON") from error
    if not isinstance(message, dict):
        raise BadFrame("a message must be an object")
    if message.get("protocolVersion") != "v1":
        raise BadFrame("protocolVersion must be v1")
    text(message, "requestId")
    text(message, "type")
    return message


def text(message: dict[str, Any], name: str) -> str:
    """A string field that is not blank. Raises BadFrame."""
    value = message.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadFrame(f"{name} is required")
    return value


Message = dict[str, Any]
WORK: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "conversation": JsonConsumer.follow_conversation,
    "sidebar": JsonConsumer.follow_sidebar,
    "ingest": JsonConsumer.follow_ingest,
}


def subscription(message: Message) -> tuple[str, ...]:
    """A key of WORK, and the arguments of its work. Raises BadFrame."""
    subject = message["type"].partition("_")[2]
    return (subject, text(message, "conversationId")) if subject == "conversation" else (subject,)


async def subscribe(socket: JsonConsumer, message: Message) -> None:
    subject, *ids = subscription(message)
    socket.follow(":".join((subject, *ids)), lambda: WORK[subject](socket, *ids))


async def unsubscribe(socket: JsonConsumer, message: Message) -> None:
    socket.unfollow(":".join(subscription(message)))


async def cancel_inflight(socket: JsonConsumer, message: Message) -> None:
    conversation_id = text(message, "conversationId")
    inflight_id = text(message, "inflightId")
    if await runner.cancel(conversation_id, inflight_id):
        return
    if await _is_visible(conversation_id):
        hub.notify(_cancels_of(conversation_id), inflight_id)
        if f"conversation:{conversation_id}" in socket.tasks:
            return  # it is told as a subscriber
    await socket.send_frame(not_inflight(conversation_id, inflight_id))


def _cancels_of(conversation_id: str) -> str:
    """The topic of requests to cancel a run that is not there. Keys are in-flight ids."""
    return f"cancel:{conversation_id}"


@database_sync_to_async
def _is_visible(conversation_id: str) -> bool:
    """Whether the current user may see a conversation: others' pages get no frames of theirs."""
    try:
        queries.get(conversation_id)
    except (NotFound, DatabaseError):
        return False
    return True


HANDLERS: dict[str, Callable[[JsonConsumer, Message], Awaitable[None]]] = {
    **{f"subscribe_{subject}": subscribe for subject in WORK},
    **{f"unsubscribe_{subject}": unsubscribe for subject in WORK},
    "cancel_inflight": cancel_inflight,
}
