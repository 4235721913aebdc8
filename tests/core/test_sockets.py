"""Fault row 16: a websocket from another origin, under another host, without a login."""

from collections.abc import Callable

import pytest
from channels.testing import WebsocketCommunicator

from codeinfo.asgi import application

SOCKETS = ["/ws", "/ws/ui/ingest", "/ws/ui/chat/c1"]


async def accepted(path: str, **headers: str) -> bool:
    pairs = [
        (name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()
    ]
    socket = WebsocketCommunicator(application, path, headers=pairs)
    connected, _ = await socket.connect()
    await socket.disconnect()
    return connected


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", SOCKETS)
class TestEverySocket:
    async def test_opens_to_our_own_origin_and_to_programs(self, path: str) -> None:
        assert await accepted(path)
        assert await accepted(path, origin="http://localhost")

    @pytest.mark.fault("A page of another site")
    @pytest.mark.parametrize(
        "origin", ["http://evil.example", "null", "http://localhost:81", "file://"]
    )
    async def test_is_refused_to_another_origin(self, path: str, origin: str) -> None:
        assert not await accepted(path, origin=origin)

    @pytest.mark.fault("A page of another site")
    @pytest.mark.parametrize("host", ["evil.example", "", "localhost.evil.example"])
    async def test_is_refused_under_another_host(self, path: str, host: str) -> None:
        assert not await accepted(path, host=host, origin=f"http://{host}")

    @pytest.mark.fault("A page of another site")
    async def test_is_refused_without_a_login_where_one_is_required(
        self, path: str, configure: Callable[..., None]
    ) -> None:
        configure(require_login=True, api_token="key-1")
        assert not await accepted(path)
        assert not await accepted(path, authorization="Bearer key-2")
        assert await accepted(path, authorization="Bearer key-1")


# Channels looks after the connections of the thread it borrows, so they must be allowed.
@pytest.mark.fault("A page of another site")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/", "/ws/", "/ws/ui/nothing", "/chat", "/wsx"])
async def test_every_other_path_is_refused(path: str) -> None:
    assert not await accepted(path)
