"""One turn of Codex. It runs in its own thread and is read from the event loop.

begin → ThreadOpened → TurnNotification* → Unavailable, if it fails → None
"""

import asyncio
import logging
import re
import threading

from openai_codex.client import CodexClient
from openai_codex.errors import CodexError, InvalidRequestError
from openai_codex.models import Notification, UnknownNotification
from pydantic import BaseModel

from apps.agents.providers.codex.background import call_in_loop, run_in_thread
from apps.agents.providers.codex.failures import line_too_long, process_lost, request_failed
from apps.agents.providers.codex.options import TurnParameters
from apps.agents.providers.codex.process import LineTooLong
from apps.agents.providers.codex.server import CONNECTION_ERRORS, AppServer
from apps.agents.providers.codex.wire import ThreadOpened, TurnNotification
from apps.core.errors import Unavailable
from apps.core.types import JSON

log = logging.getLogger("codeinfo.agents")


# Error messages of Codex for an unknown thread.
THREAD_NOT_FOUND = re.compile(r"no rollout found|invalid session id|thread not found")
# Seconds to wait for the end of the turn after each interrupt. After the last one, the turn's
# thread is abandoned.
INTERRUPT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


class _AnyResponse(BaseModel, extra="allow"):
    """A response that is ignored."""


class CodexTurn:
    """Belongs to the event loop that creates it; only `_run` and its helpers run in the thread."""

    def __init__(self, server: AppServer, parameters: TurnParameters) -> None:
        self._server, self._parameters = server, parameters
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[ThreadOpened | TurnNotification | Unavailable | None] = (
            asyncio.Queue()
        )
        self._finished = asyncio.Event()
        self._lock = threading.Lock()
        self._abandoned = False
        self._running: tuple[CodexClient, str, str] | None = None

    def begin(self) -> None:
        """Start the thread of the turn."""
        threading.Thread(target=self._run, name="codex-turn", daemon=True).start()

    async def next(self, seconds: float) -> ThreadOpened | TurnNotification | None:
        """Return the next item; None at the end.

        Raises TimeoutError after `seconds` of silence, and Unavailable if Codex failed.
        """
        async with asyncio.timeout(seconds):
            item = await self._queue.get()
        if isinstance(item, Unavailable):
            raise item
        return item

    async def close(self) -> None:
        """Interrupt the turn if it still runs, and wait for its end."""
        if self._finished.is_set():
            return
        for seconds in INTERRUPT_WAITS:
            await run_in_thread(self._interrupt)
            try:
                async with asyncio.timeout(seconds):
                    await self._finished.wait()
            except TimeoutError:
                # Codex ignores an interrupt at the very start of a turn.
                continue
            return
        log.warning("Codex did not end an interrupted turn in time")

    def _interrupt(self) -> None:
        with self._lock:
            self._abandoned = True
            running = self._running
        if running is not None:
            client, thread_id, turn_id = running
            try:
                client.turn_interrupt(thread_id, turn_id)
            except (CodexError, OSError) as error:
                # The turn has just ended.
                log.debug("Codex had no turn to interrupt: %s", error)

    def _run(self) -> None:
        try:
            client, opened = self._server.call(self._open_thread)
            self._put(opened)
            self._run_turn(client, opened.thread_id)
        except LineTooLong as error:
            self._put(line_too_long(error))
        except CONNECTION_ERRORS:
            self._put(process_lost())
        except CodexError as error:
            self._put(request_failed(error))
        except Unavailable as error:
            self._put(error)
        finally:
            call_in_loop(self._loop, self._finished.set)
            self._put(None)

    def _open_thread(self, client: CodexClient) -> tuple[CodexClient, ThreadOpened]:
        thread = self._parameters.thread
        thread_id = self._parameters.thread_id
        if thread_id is not None:
            try:
                # Without its turns: a long conversation exceeds the size of one message.
                resumed = client.thread_resume(thread_id, {**thread, "excludeTurns": True})
                return client, ThreadOpened(resumed.thread.id)
            except InvalidRequestError as error:
                if not THREAD_NOT_FOUND.search(error.message):
                    raise
        parameters = {**thread, "developerInstructions": self._parameters.instructions or None}
        started = client.thread_start({key: v for key, v in parameters.items() if v is not None})
        return client, ThreadOpened(started.thread.id, replaced=thread_id is not None)

    def _run_turn(self, client: CodexClient, thread_id: str) -> None:
        try:
            if not self._abandoned:
                self._stream_notifications(client, thread_id)
            # Unload the thread; it is on disk and may be resumed with other flags.
            client.request(
                "thread/unsubscribe", {"threadId": thread_id}, response_model=_AnyResponse
            )
        except CONNECTION_ERRORS as error:
            self._server.discard(client, error)
            raise

    def _stream_notifications(self, client: CodexClient, thread_id: str) -> None:
        turn_id = client.turn_start(thread_id, self._parameters.text, self._parameters.turn).turn.id
        with self._lock:
            self._running = client, thread_id, turn_id
            abandoned = self._abandoned
        if abandoned:
            self._interrupt()
        method = ""
        while method != "turn/completed":
            notification = client.next_turn_notification(turn_id)
            method = notification.method
            self._put(TurnNotification(method, _payload(notification)))
        client.unregister_turn_notifications(turn_id)

    def _put(self, item: ThreadOpened | TurnNotification | Unavailable | None) -> None:
        call_in_loop(self._loop, lambda: self._queue.put_nowait(item))


def _payload(notification: Notification) -> JSON:
    payload = notification.payload
    if isinstance(payload, UnknownNotification):
        return dict(payload.params)
    return payload.model_dump(by_alias=True, exclude_none=True, mode="json")
