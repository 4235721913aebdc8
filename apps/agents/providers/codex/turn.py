"""One turn of Codex. It runs in its own thread and is read from the event loop.

begin → ThreadOpened → TurnNotification* → Unavailable, if it fails → None
"""

import asyncio
import logging
import re
import threading
from pathlib import Path

from openai_codex.client import CodexClient
from openai_codex.errors import CodexError, InvalidRequestError
from openai_codex.models import Notification, UnknownNotification
from pydantic import BaseModel

from apps.agents.providers.codex import work_folder
from apps.agents.providers.codex.failures import process_lost, request_failed
from apps.agents.providers.codex.options import TurnParameters
from apps.agents.providers.codex.process import LineTooLong
from apps.agents.providers.codex.sandbox import PROFILE
from apps.agents.providers.codex.server import CONNECTION_ERRORS, AppServer, effective_config
from apps.agents.providers.codex.wire import ThreadOpened, TurnNotification
from apps.core.concurrency.tasks import call_in_loop, in_new_thread
from apps.core.errors import Unavailable
from apps.core.types import JSON

log = logging.getLogger("codeinfo.agents")


# Error messages of Codex for an unknown thread.
THREAD_NOT_FOUND = re.compile(r"no rollout found|invalid session id|thread not found")
# Seconds to wait for the end of the turn after each interrupt. After the last one, the turn's
# thread is abandoned.
INTERRUPT_WAITS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
NO_SANDBOX = "This version of Codex does not know the sandbox of codeinfo. Install another one."


class _AnyResponse(BaseModel, extra="allow"):
    """A response that is ignored."""


class _Named(BaseModel):
    id: str


class Opened(BaseModel):
    """The used part of the response to `thread/start` and `thread/resume`."""

    thread: _Named
    activePermissionProfile: _Named | None = None

    def limited(self, parameters: JSON) -> _Named:
        """Return the thread. Raises Unavailable if Codex did not accept the sandbox for it."""
        active = self.activePermissionProfile
        if "permissions" in parameters and (active is None or active.id != PROFILE):
            raise Unavailable(NO_SANDBOX, code="PROVIDER_UNAVAILABLE", retryable=False)
        return self.thread


class CodexTurn:
    """Belongs to the event loop that creates it; only `_run` and its helpers run in the thread."""

    def __init__(
        self, server: AppServer, parameters: TurnParameters, temporary: Path | None
    ) -> None:
        """temporary: a working folder that is removed after the turn."""
        self._server, self._parameters, self._temporary = server, parameters, temporary
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
            try:
                async with asyncio.timeout(seconds):
                    # Codex may not answer an interrupt at the very end of a turn.
                    await in_new_thread(self._interrupt, "codex")
                    await self._finished.wait()
            except TimeoutError:
                # Codex ignores an interrupt at the very start of a turn.
                continue
            return
        log.warning("Codex did not end an interrupted turn in time: its process is ended")
        await in_new_thread(self._server.close, "codex")

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
            self._run_turn(client, opened)
        except LineTooLong as error:
            self._put(Unavailable(str(error), code="PROVIDER_ERROR"))
        except CONNECTION_ERRORS:
            self._put(process_lost())
        except CodexError as error:
            self._put(request_failed(error))
        except Unavailable as error:
            self._put(error)
        finally:
            if self._temporary is not None:
                work_folder.remove(self._temporary)
            call_in_loop(self._loop, self._finished.set)
            self._put(None)

    def _open_thread(self, client: CodexClient) -> tuple[CodexClient, ThreadOpened]:
        thread = self._thread(client)
        thread_id = self._parameters.thread_id
        if thread_id is not None:
            try:
                # Without its turns: a long conversation exceeds the size of one message.
                parameters = {**thread, "threadId": thread_id, "excludeTurns": True}
                resumed = client.request("thread/resume", parameters, response_model=Opened)
                return client, ThreadOpened(resumed.limited(thread).id, resumed=True)
            except InvalidRequestError as error:
                if not THREAD_NOT_FOUND.search(error.message):
                    raise
        parameters = {**thread, "developerInstructions": self._parameters.instructions or None}
        started = client.request("thread/start", parameters, response_model=Opened)
        opened = started.limited(thread)
        return client, ThreadOpened(opened.id, replaced=thread_id is not None)

    def _thread(self, client: CodexClient) -> JSON:
        """Return the thread's parameters, without the MCP servers in the settings of the home."""
        thread = self._parameters.thread
        config: JSON = thread["config"]
        others = effective_config(client).mcp_servers.keys() - config["mcp_servers"].keys()
        servers = config["mcp_servers"] | dict.fromkeys(others, {"enabled": False})
        return {**thread, "config": {**config, "mcp_servers": servers}}

    def _run_turn(self, client: CodexClient, opened: ThreadOpened) -> None:
        thread: JSON = {"threadId": opened.thread_id}
        text = self._parameters.text if opened.resumed else self._parameters.first_text
        try:
            if not self._abandoned:
                self._stream_notifications(client, opened.thread_id, text)
            # Programs that the turn has started go on otherwise.
            client.request("thread/backgroundTerminals/clean", thread, response_model=_AnyResponse)
            # Unload the thread; it is on disk and may be resumed with other flags.
            client.request("thread/unsubscribe", thread, response_model=_AnyResponse)
        except CONNECTION_ERRORS as error:
            self._server.discard(client, error)
            raise

    def _stream_notifications(self, client: CodexClient, thread_id: str, text: str) -> None:
        turn_id = client.turn_start(thread_id, text, self._parameters.turn).turn.id
        with self._lock:
            self._running = client, thread_id, turn_id
            abandoned = self._abandoned
        if abandoned:
            self._interrupt()
        method = ""
        while method != "turn/completed":
            notification = client.next_turn_notification(turn_id)
            method = notification.method
            if method == "turn/completed":
                with self._lock:
                    self._running = None
            self._put(TurnNotification(method, _payload(notification)))
        client.unregister_turn_notifications(turn_id)

    def _put(self, item: ThreadOpened | TurnNotification | Unavailable | None) -> None:
        call_in_loop(self._loop, self._queue.put_nowait, item)


def _payload(notification: Notification) -> JSON:
    payload = notification.payload
    if isinstance(payload, UnknownNotification):
        return dict(payload.params)
    return payload.model_dump(by_alias=True, exclude_none=True, mode="json")
