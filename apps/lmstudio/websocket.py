"""The websocket of LM Studio's SDK: without TLS, to the server itself, and bounded.

The SDK opens websockets by itself, in a task of its own. What its messages may take together, and
each of them, comes to that task by a context variable.
"""

from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_ws import AsyncWebSocketSession, aconnect_ws
from httpx_ws._api import EndOfStream
from wsproto.connection import Connection, ConnectionType
from wsproto.events import Event, Message

from apps.core.config import config
from apps.core.limits import named, size
from apps.core.replies import MAX_LIST


@dataclass
class Bounds:
    """The bytes of a message and of all messages of one connection.

    `refused` says what was too long, once something was: a clause for a person.
    """

    message: int
    message_words: str
    reply: int
    refused: str = ""

    @classmethod
    def of_answer(cls) -> "Bounds":
        k = config()
        words = f"{named('max_frame_bytes')} bytes"
        return cls(k.max_frame_bytes, words, k.max_reply_bytes)

    @classmethod
    def of_list(cls) -> "Bounds":
        most = min(MAX_LIST, config().max_reply_bytes)
        words = f"{most} bytes" if most == MAX_LIST else f"{named('max_reply_bytes')} bytes"
        return cls(most, words, config().max_reply_bytes)


_bounds: ContextVar[Bounds] = ContextVar("bounds")


@contextmanager
def bounded(bounds: Bounds) -> Iterator[None]:
    """For websockets that are opened by tasks begun in the block."""
    token = _bounds.set(bounds)
    try:
        yield
    finally:
        _bounds.reset(token)


class _Connection(Connection):
    """Counts messages before anything puts their parts together."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(ConnectionType.CLIENT)
        self._bounds = bounds
        self._message = self._reply = 0

    def events(self) -> Generator[Event, None, None]:
        for event in super().events():
            if isinstance(event, Message):
                self._count(event)
            yield event

    def _count(self, part: Message[Any]) -> None:
        length = size(part.data) if isinstance(part.data, str) else len(part.data)
        self._message += length
        self._reply += length
        if self._message > self._bounds.message:
            self._refuse(f"a message of more than {self._bounds.message_words}")
        if self._reply > self._bounds.reply:
            self._refuse(f"a reply of more than {named('max_reply_bytes')} bytes")
        if part.message_finished:
            self._message = 0

    def _refuse(self, what: str) -> None:
        self._bounds.refused = what
        # As if the server had hung up: the session closes, and whoever waits hears of it.
        raise EndOfStream


class _Session(AsyncWebSocketSession):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection = _Connection(_bounds.get())


@asynccontextmanager
async def websocket(url: str) -> AsyncIterator[AsyncWebSocketSession]:
    """A websocket without TLS, to the server itself and through no proxy.

    The HTTP client that the SDK would take reads all certificates first, 50 ms in which this
    process serves nobody.
    """
    plain = httpx.AsyncClient(verify=False, trust_env=False)
    session: type[AsyncWebSocketSession] = _Session
    async with plain as client, aconnect_ws(url, client, session_class=session) as opened:
        yield opened
