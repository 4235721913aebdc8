"""A server that answers every request with the same bytes, which may be invalid, long or slow.

with RawStandIn(http(body=b"{")) as server:                # one response, sent unchanged
with RawStandIn(http(), b"x" * 65_536, times=3_000) as …   # 200 MB, not held in memory
"""

import asyncio
import re
import threading

from tests.stand_ins.server import StandIn


def http(body: bytes = b"", status: int = 200, kind: str = "application/json", *more: str) -> bytes:
    """Return an HTTP response whose body ends with the connection; `more` are header lines."""
    headers = [f"HTTP/1.1 {status} Scripted", f"Content-Type: {kind}", *more, "Connection: close"]
    return "\r\n".join([*headers, "", ""]).encode("latin-1") + body


class RawStandIn(StandIn):
    """Sends `head`, then `piece` `times` times, each after `drips` seconds."""

    def __init__(self, head: bytes, piece: bytes = b"", times: int = 0, drips: float = 0.0) -> None:
        super().__init__()
        self.head, self.piece, self.times, self.drips = head, piece, times, drips
        self.requests: list[bytes] = []
        self.sent = 0
        self.client_left = threading.Event()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head)
        # To close a connection with bytes that were not read resets it.
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(self.head)
        try:
            for _ in range(self.times):
                if self.drips:
                    await asyncio.sleep(self.drips)
                writer.write(self.piece)
                await writer.drain()
                self.sent += len(self.piece)
        except ConnectionError:
            self.client_left.set()
            raise
