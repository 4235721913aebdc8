"""Messages over HTTP to an endpoint of the server.

A module of its own, as httpx takes a tenth of a second to import: the handshake is answered before.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

from codeinfo_cli.bridge import messages
from codeinfo_cli.bridge.link import Link
from codeinfo_cli.bridge.messages import BadAnswer, Disconnected, Message
from codeinfo_cli.server import Address

ACCEPT = "application/json, text/event-stream"
EVENT_STREAM = "text/event-stream"
# The server sends something every 15 s while it works.
READ_SECONDS, CONNECT_SECONDS = 120.0, 10.0
# A server that was killed is still found, until all its files are closed.
LEAVING_SECONDS, LOOK_SECONDS = 15.0, 0.2


class Answer:
    """The server's answer to a message. At the end of its block, the connection is closed; that
    cancels a call that is not answered yet."""

    def __init__(self, http: "Http", response: httpx.Response) -> None:
        self._http = http
        self._response = response
        self.status = response.status_code
        self.session = response.headers.get("mcp-session-id", "")
        self.is_stream = response.headers.get("content-type", "").startswith(EVENT_STREAM)

    async def __aenter__(self) -> "Answer":
        return self

    async def __aexit__(self, *failure: Any) -> None:
        await self._response.aclose()

    async def body(self) -> bytes:
        """Raises Disconnected and BadAnswer."""
        body = bytearray()
        async for chunk in self._chunks():
            body += chunk
            if len(body) > messages.MAX_MESSAGE:
                raise BadAnswer("The server's answer is too large.")
        return bytes(body)

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the messages of a stream, each as one line. Raises Disconnected and BadAnswer."""
        data: list[bytes] = []
        async for line in self._lines():
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                message, data = b"\n".join(data), []
                try:
                    value = json.loads(message)
                except ValueError:
                    raise BadAnswer("An event of the server is not JSON.") from None
                yield messages.as_line(value) if b"\n" in message else message

    async def _lines(self) -> AsyncIterator[bytes]:
        rest = b""
        async for chunk in self._chunks():
            *complete, rest = (rest + chunk).split(b"\n")
            if len(rest) > messages.MAX_MESSAGE:
                raise BadAnswer("An event of the server is too large.")
            for line in complete:
                yield line.removesuffix(b"\r")

    async def _chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except httpx.HTTPError as error:
            self._http.is_leaving = True
            raise Disconnected(repr(error)) from error


class Http:
    """Sends messages to the live server. `is_leaving`: a connection broke, so it may be ending."""

    is_leaving = False

    def __init__(self, link: Link, endpoint: str) -> None:
        self._link = link
        self._endpoint = endpoint
        # Connections are not reused: a call on one that the server closes would fail.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        self._client = httpx.AsyncClient(trust_env=False, timeout=timeout, limits=limits)

    async def close(self) -> None:
        await self._client.aclose()

    async def post(self, message: Message, headers: dict[str, str]) -> Answer:
        """Send a message. What the server has not read is sent again, to a new server if that one
        has ended. Raises ServerUnavailable, and Disconnected if the server ends meanwhile."""
        if self.is_leaving:
            await asyncio.sleep(LOOK_SECONDS)
            self.is_leaving = False
        address = await self._link.address()
        answer = await self._send_to_live(message, headers)
        if answer.status == 401 and await self._link.address() != address:
            async with answer:
                return await self._send_to_live(message, headers)
        return answer

    async def _send_to_live(self, message: Message, headers: dict[str, str]) -> Answer:
        tries = int(LEAVING_SECONDS / LOOK_SECONDS)
        while True:
            address = await self._link.address()
            try:
                return await self._send(address, message, headers)
            except httpx.ConnectError as error:
                tries -= 1
                if tries <= 0:
                    raise Disconnected(repr(error)) from error
                await asyncio.sleep(LOOK_SECONDS)
            except httpx.HTTPError as error:
                self.is_leaving = True
                raise Disconnected(repr(error)) from error

    async def _send(self, address: Address, message: Message, headers: dict[str, str]) -> Answer:
        own = {
            "content-type": "application/json",
            "accept": ACCEPT,
            "authorization": f"Bearer {address.token}",
        }
        request = self._client.build_request(
            "POST", address.mcp[self._endpoint], content=message.line, headers=own | headers
        )
        return Answer(self, await self._client.send(request, stream=True))
