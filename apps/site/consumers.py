"""Websocket addresses that do not exist."""

from channels.generic.websocket import AsyncWebsocketConsumer


class RefuseConsumer(AsyncWebsocketConsumer):
    """Every path that no app claims is refused, not left hanging."""

    async def connect(self) -> None:
        await self.close(code=4404)
