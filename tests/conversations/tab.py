"""An open chat page: what its socket was sent."""

from typing import Any

from channels.testing import WebsocketCommunicator

from apps.core.concurrency.hub import hub
from codeinfo.asgi import application
from tests.support.chat import PATIENCE

HEADERS = [(b"host", b"localhost"), (b"origin", b"http://localhost")]


class Tab:
    """An open page: what it was sent, and the turns it has."""

    def __init__(self, conversation_id: str = "c1") -> None:
        path = f"/ws/ui/chat/{conversation_id}"
        self.socket = WebsocketCommunicator(application, path, headers=HEADERS)
        self.messages: list[str] = []

    async def open(self, *, mark: str = "", **turns: str) -> None:
        await self.say(turns=turns, list=mark or hub.version("sidebar"))

    async def say(self, **shown: Any) -> None:
        connected, _ = await self.socket.connect()
        assert connected
        await self.socket.send_json_to(shown)

    async def until(self, text: str) -> str:
        """Read messages up to the one that holds `text`; that one."""
        while True:
            message = await self.socket.receive_from(timeout=PATIENCE)
            self.messages.append(message)
            if text in message:
                return message

    @property
    def all(self) -> str:
        return "".join(self.messages)
