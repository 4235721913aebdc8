"""The consumer of unknown websocket paths."""

from channels.generic.websocket import AsyncWebsocketConsumer


class RefuseConsumer(AsyncWebsocketConsumer):
    """Closes the websocket with the code 4404."""

    async def connect(self) -> None:
        await self.close(code=4404)
