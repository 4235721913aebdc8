"""Messages over HTTP to an endpoint of the server.

With h11, which is imported for the first message that is sent: it takes a hundredth of a second,
httpx a tenth. The handshake and the list of tools are answered before.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codeinfo_cli.bridge import messages
from codeinfo_cli.bridge.link import Link
from codeinfo_cli.bridge.messages import BadAnswer, Disconnected, Message
from codeinfo_cli.server import Address

if TYPE_CHECKING:
    import h11

ACCEPT = "application/json, text/event-stream"
EVENT_STREAM = "text/event-stream"
CHUNK = 65_536
# The server sends something every 15 s while it works.
READ_SECONDS, CONNECT_SECONDS = 120.0, 10.0
# A server that was killed is still found, until all its files are closed.
LEAVING_SECONDS, LOOK_SECONDS = 15.0, 0.2


class Exchange:
    """A connection with one request. Raises Disconnected if it breaks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11  # noqa: PLC0415 - see above

        self._reader = reader
        self._writer = writer
        self._h11 = h11
        self._connection = h11.Connection(h11.CLIENT)

    def close(self) -> None:
        self._writer.close()

    async def begin(self, url: str, content: bytes, headers: dict[str, str]) -> "h11.Response":
        """Send a POST, and return the head of the response."""
        lib, parts = self._h11, urlsplit(url)
        # Connections are not reused: a call on one that the server closes would fail.
        own = {"host": parts.netloc, "content-length": str(len(content)), "connection": "close"}
        request = lib.Request(method="POST", target=parts.path, headers=[*(own | headers).items()])
        for event in (request, lib.Data(content), lib.EndOfMessage()):
            # It is not waited for: the server may answer before it has read all of it.
            self._writer.write(self._connection.send(event) or b"")
        while not isinstance(event := await self._next(), lib.Response):
            pass
        response: h11.Response = event
        return response

    async def data(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body."""
        while isinstance(event := await self._next(), self._h11.Data):
            yield bytes(event.data)

    async def _next(self) -> Any:
        lib = self._h11
        try:
            while (event := self._connection.next_event()) is lib.NEED_DATA:
                async with asyncio.timeout(READ_SECONDS):
                    self._connection.receive_data(await self._reader.read(CHUNK))
        except (OSError, lib.RemoteProtocolError) as error:
            raise Disconnected(repr(error)) from error
        if isinstance(event, lib.ConnectionClosed):
            raise Disconnected("the connection was closed")
        return event


class Answer:
    """The server's answer to a message. At the end of its block, the connection is closed; that
    cancels a call that is not answered yet."""

    def __init__(self, http: "Http", exchange: Exchange, response: "h11.Response") -> None:
        headers = {name: value.decode("latin-1") for name, value in response.headers}
        self._http = http
        self._exchange = exchange
        self.status = response.status_code
        self.session = headers.get(b"mcp-session-id", "")
        self.is_stream = headers.get(b"content-type", "").startswith(EVENT_STREAM)

    async def __aenter__(self) -> "Answer":
        return self

    async def __aexit__(self, *failure: Any) -> None:
        self._exchange.close()

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
            async for chunk in self._exchange.data():
                yield chunk
        except Disconnected:
            self._http.is_leaving = True
            raise


class Http:
    """Sends messages to the live server. `is_leaving`: a connection broke, so it may be ending."""

    is_leaving = False

    def __init__(self, link: Link, endpoint: str) -> None:
        self._link = link
        self._endpoint = endpoint

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
                async with asyncio.timeout(CONNECT_SECONDS):
                    parts = urlsplit(address.mcp[self._endpoint])
                    streams = await asyncio.open_connection(parts.hostname, parts.port)
            except TimeoutError as error:
                self.is_leaving = True
                raise Disconnected(repr(error)) from error
            except OSError as error:
                tries -= 1
                if tries <= 0:
                    raise Disconnected(repr(error)) from error
                await asyncio.sleep(LOOK_SECONDS)
            else:
                return await self._send(Exchange(*streams), address, message, headers)

    async def _send(
        self, exchange: Exchange, address: Address, message: Message, headers: dict[str, str]
    ) -> Answer:
        own = {
            "content-type": "application/json",
            "accept": ACCEPT,
            "authorization": f"Bearer {address.token}",
        }
        try:
            url = address.mcp[self._endpoint]
            response = await exchange.begin(url, message.line, own | headers)
        except BaseException as error:
            exchange.close()
            self.is_leaving |= isinstance(error, Disconnected)
            raise
        return Answer(self, exchange, response)
