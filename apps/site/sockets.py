"""How daphne's websockets are bounded, and closed with a consumer's own code and reason.

Daphne hands a close to autobahn's `sendClose`, which accepts only 1000 and 3000-4999 and fails on
the codes that the standard has for servers (1008, 1009, 1011, …), and it leaves the reason out.
Whatever a consumer says to a socket that is closing already is an error to autobahn.
It bounds neither the messages that wait for a consumer nor the bytes that wait for a slow reader,
and its bound of a message holds for those that are sent, too. No compression is ever agreed on, so
that no small frame becomes a large one.
"""

from typing import Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

from apps.site.connections import Outlet

# A close frame holds 125 bytes, two of which are the code.
REASON_BYTES = 123
# What a page or program sends: at most the ids of all the turns that a page shows.
MESSAGE_BYTES = 256 * 1024
TOO_BIG = 1009
# While so many messages wait for the consumer, no more are read.
MOST_WAITING, LOOK_SECONDS = 32, 0.05


class BoundedSocket(WebSocketProtocol):
    """Daphne's protocol, with bounds and whole closes."""

    _waiting = False
    _is_refused = False

    def connectionMade(self) -> None:
        self.outlet = Outlet()
        # In the place of the HTTP connection that this one was.
        self.transport.unregisterProducer()
        self.transport.registerProducer(self, True)
        super().connectionMade()

    def connectionLost(self, reason: Any) -> None:
        self.factory.server_class.http_factory.closed(self.transport)
        self.outlet.end()
        super().connectionLost(reason)

    # Receiving

    def dataReceived(self, data: bytes) -> None:
        if hasattr(self, "handshake_deferred"):
            # It is not open yet, and its client should know that; autobahn would keep it all.
            self.transport.abortConnection()
        else:
            super().dataReceived(data)

    def onMessageFrameBegin(self, length: int) -> None:
        super().onMessageFrameBegin(length)
        if not self._is_refused and self.message_data_total_length > MESSAGE_BYTES:
            # autobahn keeps no more of a message then
            self.failedByMe = self._is_refused = True
            self.sendCloseFrame(code=TOO_BIG, reasonUtf8=b"message too large")

    def onMessage(self, payload: bytes, isBinary: bool) -> None:
        super().onMessage(payload, isBinary)
        if not self._waiting and self._too_many_wait():
            self._waiting = True
            self._look_again()

    def _too_many_wait(self) -> bool:
        return bool(self.application_queue.qsize() > MOST_WAITING)

    def _look_again(self) -> None:
        self._waiting = self._too_many_wait()
        if self._waiting:
            self.factory.reactor.callLater(LOOK_SECONDS, self._look_again)
        self._read_or_pause()

    # Sending

    async def drained(self) -> None:
        """Wait until the connection takes more to send."""
        await self.outlet.drained()

    def pauseProducing(self) -> None:
        """Called when there is more to send than the connection takes: nor is anything read, since
        each ping is answered."""
        self.outlet.fill()
        self._read_or_pause()

    def resumeProducing(self) -> None:
        """Called when all of it was sent."""
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
        """Called with what the consumer says. It may not have heard yet that the socket is closing:
        then nothing of it can be sent any more."""
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
    """Use it for every socket of this process."""
    WebSocketFactory.protocol = BoundedSocket
