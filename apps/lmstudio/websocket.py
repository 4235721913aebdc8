"""The websocket of LM Studio's SDK: without TLS or proxy, and with limits on its size.

The SDK opens websockets itself, in another task. A context variable passes the limits to that task.
"""

from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx
from httpx_ws import AsyncWebSocketSession, aconnect_ws
from httpx_ws._api import EndOfStream
from wsproto.connection import Connection, ConnectionType
from wsproto.events import Event, Message

from apps.core.http import limits
from apps.core.http.limits import size


@dataclass
class Bounds:
    """Limits of one connection.

    message: bytes of one message.
    refused: what exceeded a limit, a clause for the user; "" before.
    """

    message: int
    refused: str = ""


# Of the websockets that the current task, and tasks that it starts, open.
current_bounds: ContextVar[Bounds] = ContextVar("current_bounds")


class _Connection(Connection):
    """Counts the bytes of messages before their fragments are joined."""

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
            self._refuse(f"a message of more than {self._bounds.message} bytes")
        if self._reply > limits.MAX_REPLY_BYTES:
            self._refuse(f"a reply of more than {limits.MAX_REPLY_BYTES} bytes")
        if part.message_finished:
            self._message = 0

    def _refuse(self, problem: str) -> None:
        self._bounds.refused = problem
        # As if the server had closed the connection: the session closes and waiting tasks fail.
        raise EndOfStream


class _Session(AsyncWebSocketSession):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection = _Connection(current_bounds.get())


@asynccontextmanager
async def websocket(url: str) -> AsyncIterator[AsyncWebSocketSession]:
    """Open a websocket without TLS and without a proxy.

    The SDK's default HTTP client reads all certificates first, which blocks the process for 50 ms.
    """
    plain = httpx.AsyncClient(verify=False, trust_env=False)
    session_class: type[AsyncWebSocketSession] = _Session
    async with plain as client, aconnect_ws(url, client, session_class=session_class) as session:
        yield session
