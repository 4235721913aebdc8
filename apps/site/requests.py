"""Limits the number, size and duration of requests.

Twisted stores the whole body of a request, without a limit of size or time, before daphne passes it
to the application. It also parses every form (and closes the connection for a malformed one), and
formats an access log. Neither is needed: Django parses forms, and `apps.logs` logs requests.

Twisted's own limits: 500 headers; 16 kB of request line and headers; 16 kB of pipelined requests;
64 kB of trailers; a minute without data.
"""

import logging
from functools import partial
from typing import Any

from daphne import server
from daphne.http_protocol import HTTPFactory, WebRequest
from django.http import HttpResponse
from twisted.web.http import HTTPChannel

from apps.core.errors import CodeinfoError, InvalidInput
from apps.core.security import local_users
from apps.core.security.access import MAX_BODY, check_length
from apps.site import refusals
from apps.site.connections import REFUSED, OpenConnections, Outlet, holder_of
from apps.site.refusals import RequestHead

logger = logging.getLogger("codeinfo.site")

# Time limit from the first byte of a request to the last one of its body.
RECEIVE_SECONDS = 60
# After a refusal, data is still read and discarded, so that a client that is sending gets the
# response.
LINGER_SECONDS, LINGER_BYTES = 5, 4 << 20


class BoundedRequest(WebRequest):
    """Daphne's request, with a limit of its body."""

    received = 0

    def handleContentChunk(self, data: bytes) -> None:
        if self.channel.refused:
            return
        self.received += len(data)
        try:
            check_length(self.received, MAX_BODY)
        except InvalidInput as error:
            self.channel.refuse(error)
        else:
            super().handleContentChunk(data)

    async def drained(self) -> None:
        """Wait until more can be sent."""
        channel = getattr(self, "channel", None)  # missing after the request has ended
        if channel is not None:
            await channel.outlet.drained()


class BoundedChannel(HTTPChannel):
    """A connection. Its requests are refused when their headers are complete, or not at all."""

    refused = False
    _connection_error: CodeinfoError | None = None
    _deadline = None
    _abort = None

    def connectionMade(self) -> None:
        super().connectionMade()
        self.outlet = Outlet()
        peer, local = self.getPeer(), self.getHost()
        try:
            uid = local_users.check_connection((peer.host, peer.port), (local.host, local.port))
            holder = holder_of(peer.host, uid)
        except CodeinfoError as error:
            # Sent as the response to the first request.
            self._connection_error, holder = error, REFUSED
        if not self.factory.open.add(self.transport, holder):
            self.transport.abortConnection()

    def connectionLost(self, reason: Any) -> None:
        self._cancel_deadline()
        if self._abort is not None and self._abort.active():
            self._abort.cancel()
        self.factory.open.discard(self.transport)
        self.outlet.end()
        super().connectionLost(reason)

    # Receiving

    def dataReceived(self, data: bytes) -> None:
        if self.refused:
            self._discard(data)
            return
        if self._deadline is None and not self._handlingRequest:
            self._deadline = self.callLater(RECEIVE_SECONDS, self._too_slow)
        super().dataReceived(data)

    def rawDataReceived(self, data: bytes) -> None:
        if self.refused:
            self._discard(data)
        else:
            super().rawDataReceived(data)

    def allHeadersReceived(self) -> None:
        try:
            if self._connection_error is not None:
                raise self._connection_error
            refusals.check_body(self._head())
        except CodeinfoError as error:
            self.refuse(error)
        else:
            super().allHeadersReceived()

    def allContentReceived(self) -> None:
        if not self.refused:
            self._cancel_deadline()
            super().allContentReceived()

    def _head(self) -> RequestHead:
        headers = self.requests[-1].requestHeaders
        host, accept = (headers.getRawHeaders(name) for name in (b"host", b"accept"))
        return RequestHead(
            method=self._command.decode("latin-1"),
            target=self._path.decode("latin-1"),
            host=b",".join(host).decode("latin-1") if host else None,
            accept=b",".join(accept or []).decode("latin-1"),
            length=self.length,
            port=self.getHost().port,
        )

    def _too_slow(self) -> None:
        self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n")
        self.timeoutConnection()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self._deadline = None

    # Refusing

    def refuse(self, error: CodeinfoError) -> None:
        """Send an error response, and close the connection. Further data is discarded."""
        response = refusals.response_to(error, self._head())
        self.refused = True
        self.length = None  # 0 would mean a request without a body
        self._cancel_deadline()
        self.setTimeout(None)
        content, self.requests[-1].content = self.requests[-1].content, None
        if content is not None:
            content.close()
        self._lingering = LINGER_BYTES
        self._abort = self.callLater(LINGER_SECONDS, self.transport.abortConnection)
        self.transport.write(_serialised(response))
        self.transport.loseWriteConnection()

    def _discard(self, data: bytes) -> None:
        self._lingering -= len(data)
        if self._lingering < 0:
            self.transport.abortConnection()

    # Sending

    def pauseProducing(self) -> None:
        """Called when the send buffer is full."""
        self.outlet.fill()
        super().pauseProducing()

    def resumeProducing(self) -> None:
        """Called when the send buffer is empty."""
        self.outlet.drain()
        super().resumeProducing()


def _serialised(response: HttpResponse) -> bytes:
    """Return the bytes of a response after which the connection is closed."""
    response["Content-Length"] = str(len(response.content))
    response["X-Content-Type-Options"] = "nosniff"
    response["Connection"] = "close"
    status = f"HTTP/1.1 {response.status_code} {response.reason_phrase}\r\n"
    return status.encode() + response.serialize_headers() + b"\r\n\r\n" + response.content


class BoundedRequests(HTTPFactory):
    """Daphne's factory, with BoundedChannel and BoundedRequest, and without an access log."""

    protocol = BoundedChannel

    def __init__(self, *arguments: Any, most: int | None = None, each: int | None = None) -> None:
        """most, each: as of OpenConnections"""
        super().__init__(*arguments)
        self.open = OpenConnections(most, each)  # websockets included
        self._full = False

    def buildProtocol(self, addr: Any) -> Any:
        """Return None, which closes the connection, if there are too many."""
        if len(self.open) >= self.open.most:
            if not self._full:
                logger.warning("too many connections", extra={"context": {"open": self.open.most}})
            self._full = True
            return None
        self._full = False
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = partial(BoundedRequest, parsePOSTFormSubmission=False)
        return protocol

    def log(self, request: WebRequest) -> None:
        """Log nothing."""


def install() -> None:
    """Make daphne use BoundedRequests in this process."""
    server.HTTPFactory = BoundedRequests
