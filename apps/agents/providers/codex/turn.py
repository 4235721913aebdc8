"""One turn of Codex, in a thread of its own; what it tells is read in the event loop.

begin → the thread is opened (Opened) → notifications …  → an error, if any → the end (None)
"""

import asyncio
import logging
import re
import threading
from typing import Any

from openai_codex.client import CodexClient
from openai_codex.errors import CodexError, InvalidRequestError
from openai_codex.models import Notification, UnknownNotification
from pydantic import BaseModel

from apps.agents.providers.codex.background import in_thread, tell
from apps.agents.providers.codex.failures import line_too_long, process_lost, refused
from apps.agents.providers.codex.options import Plan
from apps.agents.providers.codex.process import LineTooLong
from apps.agents.providers.codex.server import LOST, AppServer
from apps.agents.providers.codex.wire import Opened, Told
from apps.core.errors import Unavailable

log = logging.getLogger("codeinfo.agents")

JSON = dict[str, Any]

# What Codex says of a thread that it does not have.
NOT_THERE = re.compile(r"no rollout found|invalid session id|thread not found")
# How long to wait for the end of a turn after each time that it was interrupted, in seconds; then
# it is left behind.
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


class _Anything(BaseModel, extra="allow"):
    """The answer to a request whose answer does not matter."""


class Turn:
    """Belongs to the event loop in which it was made; `_run` alone is the thread's."""

    def __init__(self, server: AppServer, plan: Plan) -> None:
        self._server, self._plan = server, plan
        self._loop = asyncio.get_running_loop()
        self._said: asyncio.Queue[Opened | Told | Unavailable | None] = asyncio.Queue()
        self._ended = asyncio.Event()
        self._handing_over = threading.Lock()
        self._left = False
        self._begun: tuple[CodexClient, str, str] | None = None

    def begin(self) -> None:
        threading.Thread(target=self._run, name="codex-turn", daemon=True).start()

    async def next(self, patience: float) -> Opened | Told | None:
        """What comes next; None at the end.

        Raises TimeoutError after so many seconds of silence, and Unavailable where Codex failed.
        """
        async with asyncio.timeout(patience):
            said = await self._said.get()
        if isinstance(said, Unavailable):
            raise said
        return said

    async def leave(self) -> None:
        """End the turn at Codex if it goes on there, so that its thread is free again."""
        if self._ended.is_set():
            return
        for seconds in PAUSES:
            await in_thread(self._interrupt)
            try:
                async with asyncio.timeout(seconds):
                    await self._ended.wait()
            except TimeoutError:
                # A turn that has only just begun does not hear it yet.
                continue
            return
        log.warning("Codex did not end an interrupted turn in time")

    def _interrupt(self) -> None:
        with self._handing_over:
            self._left = True
            begun = self._begun
        if begun is not None:
            client, thread_id, turn_id = begun
            try:
                client.turn_interrupt(thread_id, turn_id)
            except (CodexError, OSError) as error:
                # It has just ended by itself.
                log.debug("Codex had no turn to interrupt: %s", error)

    def _run(self) -> None:
        try:
            client, opened = self._server.ask(self._open)
            self._tell(opened)
            self._answer(client, opened.thread_id)
        except LineTooLong as error:
            self._tell(line_too_long(error))
        except LOST:
            self._tell(process_lost())
        except CodexError as error:
            self._tell(refused(error))
        except Unavailable as error:
            self._tell(error)
        finally:
            tell(self._loop, self._ended.set)
            self._tell(None)

    def _open(self, client: CodexClient) -> tuple[CodexClient, Opened]:
        thread = self._plan.thread
        known = self._plan.thread_id
        if known is not None:
            try:
                # Without its turns: a long conversation would not fit into one message.
                resumed = client.thread_resume(known, {**thread, "excludeTurns": True})
                return client, Opened(resumed.thread.id)
            except InvalidRequestError as error:
                if not NOT_THERE.search(error.message):
                    raise
        given = {**thread, "developerInstructions": self._plan.instructions or None}
        started = client.thread_start({key: v for key, v in given.items() if v is not None})
        return client, Opened(started.thread.id, anew=known is not None)

    def _answer(self, client: CodexClient, thread_id: str) -> None:
        try:
            if not self._left:
                self._follow(client, thread_id)
            # Out of memory until it goes on, perhaps with other flags: it is on disk.
            client.request("thread/unsubscribe", {"threadId": thread_id}, response_model=_Anything)
        except LOST as error:
            self._server.lost(client, error)
            raise

    def _follow(self, client: CodexClient, thread_id: str) -> None:
        turn_id = client.turn_start(thread_id, self._plan.text, self._plan.turn).turn.id
        with self._handing_over:
            self._begun = client, thread_id, turn_id
            left = self._left
        if left:
            self._interrupt()
        method = ""
        while method != "turn/completed":
            notification = client.next_turn_notification(turn_id)
            method = notification.method
            self._tell(Told(method, _payload(notification)))
        client.unregister_turn_notifications(turn_id)

    def _tell(self, said: Opened | Told | Unavailable | None) -> None:
        tell(self._loop, lambda: self._said.put_nowait(said))


def _payload(notification: Notification) -> JSON:
    payload = notification.payload
    if isinstance(payload, UnknownNotification):
        return dict(payload.params)
    return payload.model_dump(by_alias=True, exclude_none=True, mode="json")
