"""Limits daphne's websockets, and closes them with the consumer's code and reason.

Daphne closes with autobahn's `sendClose`, which accepts only the codes 1000 and 3000-4999 and not
those for servers (1008, 1009, 1011: RFC 6455, section 7.4.1), and it drops the reason. Messages to
a socket that is closing are errors in autobahn. Daphne limits neither the messages that wait for a
consumer nor the bytes that wait for a slow reader, and its message limit also applies to sent
messages. Compression is not negotiated, so a small frame cannot expand.
"""

from typing import Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

from apps.site.connections import Outlet

# A close frame has at most 125 bytes, of which the code takes two (RFC 6455, section 5.5).
REASON_BYTES = 123
# Largest received message. The largest that a page sends are the ids of the turns that it shows.
MESSAGE_BYTES = 256 * 1024
TOO_BIG = 1009
# Reading pauses while this many messages wait for the consumer; checked every POLL_SECONDS.
MAX_WAITING, POLL_SECONDS = 32, 0.05
# A client may be sending when the server closes, and read the close frame only afterwards. What it
# still sends is discarded until it pauses for the first time, and at most for the second.
SILENT_SECONDS, LINGER_SECONDS = 5, 60


class BoundedSocket(WebSocketProtocol):
    """Daphne's websocket protocol, with limits and complete close frames."""

    _waiting = False
    _is_refused = False
    _received_at = 0.0
    _closing_since: float | None = None

    def connectionMade(self) -> None:
        self.outlet = Outlet()
        # Replaces the HTTP protocol of this connection.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)
        super().connectionMade()

    def connectionLost(self, reason: Any) -> None:
        self.factory.server_class.http_factory.open.discard(self.transport)
        self.outlet.end()
        super().connectionLost(reason)

    # Receiving

    def dataReceived(self, data: bytes) -> None:
        if hasattr(self, "handshake_deferred"):
            # Data before the handshake is complete violates the protocol; autobahn would store it.
            self.transport.abortConnection()
        else:
            self._received_at = self.factory.reactor.seconds()
            super().dataReceived(data)

    def onMessageFrameBegin(self, length: int) -> None:
        super().onMessageFrameBegin(length)
        if not self._is_refused and self.message_data_total_length > MESSAGE_BYTES:
            # autobahn discards the rest of the message then; it need not be valid text
            self.failedByMe = self._is_refused = True
            self.utf8validateIncoming = self.utf8validateIncomingCurrentMessage = False
            self.sendCloseFrame(code=TOO_BIG, reasonUtf8=b"message too large")

    def onCloseHandshakeTimeout(self) -> None:
        """Called a second after the server has sent a close frame that the client has not answered.
        To drop the connection while the client sends would lose the close frame (1006)."""
        now = self.factory.reactor.seconds()
        if self._closing_since is None:
            self._closing_since = now - self.closeHandshakeTimeout
        end = min(self._received_at + SILENT_SECONDS, self._closing_since + LINGER_SECONDS)
        if now >= end or self.state == self.STATE_CLOSED:
            super().onCloseHandshakeTimeout()
        else:
            again = self.factory.reactor.callLater(end - now, self.onCloseHandshakeTimeout)
            self.closeHandshakeTimeoutCall = again

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        super().onMessage(payload, isBinary)
        if not self._waiting and self._too_many_wait():
            self._waiting = True
            self._poll()

    def _too_many_wait(self) -> bool:
        return bool(self.application_queue.qsize() > MAX_WAITING)

    def _poll(self) -> None:
        self._waiting = self._too_many_wait()
        if self._waiting:
            self.factory.reactor.callLater(POLL_SECONDS, self._poll)
        self._read_or_pause()

    # Sending

    async def drained(self) -> None:
        """Wait until more can be sent."""
        await self.outlet.drained()

    def pauseProducing(self) -> None:
        """Called when the send buffer is full. Reading pauses too, as each ping would add a
        pong."""
        self.outlet.fill()
        self._read_or_pause()

    def resumeProducing(self) -> None:
        """Called when the send buffer is empty."""
        self.outlet.drain()
        self._read_or_pause()

    def stopProducing(self) -> None:
        """Called when the connection is lost."""

    def _read_or_pause(self) -> None:
        if self._waiting or self.outlet.is_full:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Called with a message of the consumer. Ignored if the socket is closing, which the
        consumer may not know yet."""
        if self.state in (self.STATE_CLOSING, self.STATE_CLOSED):
            return
        if message.get("type") != "websocket.close" or self.state != self.STATE_OPEN:
            super().handle_reply(message)
            return
        reason = (message.get("reason") or "").encode()[:REASON_BYTES]
        self.sendCloseFrame(
            code=message.get("code") or 1000,
            reasonUtf8=reason.decode(errors="ignore").encode() or None,
        )


def install() -> None:
    """Make daphne use BoundedSocket in this process."""
    WebSocketFactory.protocol = BoundedSocket
