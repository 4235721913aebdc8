"""A stand-in for OpenAI's device login. It issues codes that no user ever enters.

CODEX_APP_SERVER_LOGIN_ISSUER configures its address in Codex.
"""

import asyncio
import json

from tests.stand_ins.server import StandIn

CODE = {"device_auth_id": "device", "user_code": "ABCD-EFGH", "interval": "1"}


class LoginStandIn(StandIn):
    """A context manager."""

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        is_code_request = head.split(" ", 2)[1].endswith("/usercode")
        body = json.dumps(CODE if is_code_request else {}).encode()
        status = "200 OK" if is_code_request else "403 Not yet"
        writer.write(
            f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()
