"""How daphne's websockets are closed: with the code and the reason that a consumer gave.

Daphne hands a close to autobahn's `sendClose`, which accepts only 1000 and 3000-4999 and fails on
the codes that the standard has for servers (1008, 1009, 1011, …), and it leaves the reason out.
"""

from typing import Any

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

# A close frame holds 125 bytes, two of which are the code.
REASON_BYTES = 123


class ClosingProtocol(WebSocketProtocol):
    """Daphne's protocol, with whole closes."""

    def handle_reply(self, message: dict[str, Any]) -> None:
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
    WebSocketFactory.protocol = ClosingProtocol
