"""The socket of a person who has signed in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from channels.testing import WebsocketCommunicator
from django.test import AsyncClient

from codeinfo.asgi import application
from tests.support.chat import PATIENCE


def cookie(client: AsyncClient) -> str:
    return f"sessionid={client.cookies['sessionid'].value}"


@asynccontextmanager
async def socket(path: str, client: AsyncClient) -> AsyncIterator[WebsocketCommunicator]:
    headers = [(b"host", b"localhost"), (b"cookie", cookie(client).encode())]
    link = WebsocketCommunicator(application, path, headers=headers)
    accepted, _ = await link.connect(timeout=PATIENCE)
    assert accepted
    try:
        yield link
    finally:
        await link.disconnect(timeout=PATIENCE)
