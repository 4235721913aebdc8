"""Clients that send slowly, or do not read what they are sent: each has its bounds."""

import asyncio
import os
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest
from daphne.ws_protocol import WebSocketFactory
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from apps.core.errors import InvalidInput
from apps.core.security import local_users
from apps.site import sockets
from apps.site.connections import MAX_REFUSED, holder_of
from apps.site.requests import RECEIVE_SECONDS, BoundedRequests
from apps.site.server import BoundedServer
from apps.site.sockets import MAX_WAITING, BoundedSocket


class Transport(StringTransport):
    """A connection in memory."""

    def loseWriteConnection(self) -> None:
        self.loseConnection()


def server() -> Any:
    """A server without ports and application, for two connections."""
    server = BoundedServer(application=None, endpoints=["none"])
    server.connections = {}
    server.http_factory = BoundedRequests(server, most=2, each=2)
    return server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def factory(clock: Clock) -> Any:
    factory = server().http_factory
    factory.reactor = clock
    return factory


def connected(factory: Any, address: str = "192.168.1.1") -> Any:
    """A new connection, before its first request."""
    channel = factory.buildProtocol(None)
    channel.makeConnection(Transport(peerAddress=IPv4Address("TCP", address, 54321)))
    return channel


@pytest.mark.fault("Too many or too slow connections")
@pytest.mark.parametrize(
    "beginning", [b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n"]
)
def test_a_request_that_comes_byte_by_byte_is_given_up(
    factory: Any, clock: Clock, beginning: bytes
) -> None:
    channel = connected(factory)
    channel.dataReceived(beginning + b"x")
    for _ in range(RECEIVE_SECONDS):
        assert not channel.transport.disconnecting
        clock.advance(1)
        channel.dataReceived(b"x")
    assert channel.transport.value().startswith(b"HTTP/1.1 408 Request Timeout")
    assert channel.transport.disconnecting


@pytest.mark.fault("Too many or too slow connections")
def test_a_connection_over_the_limit_is_refused_until_another_ends(factory: Any) -> None:
    first, _ = connected(factory), connected(factory)
    assert factory.buildProtocol(None) is None
    first.connectionLost(None)
    assert factory.buildProtocol(None) is not None


HOLDERS = [
    # Address, uid of the local user if it is known, whether it has a share alone
    ("192.168.1.7", None, True),
    ("2001:db8::7", None, True),
    ("127.0.0.1", 4711, True),
    ("127.0.0.1", 0, False),
    ("127.0.0.1", os.geteuid(), False),
    ("127.0.0.1", None, False),  # the system does not tell
    ("192.168.1.2", None, False),  # a proxy, which has the connections of many
]


@pytest.mark.fault("Too many or too slow connections")
@pytest.mark.parametrize(("address", "uid", "limited"), HOLDERS)
def test_one_address_or_user_leaves_connections_to_others(
    address: str,
    uid: int | None,
    limited: bool,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(trusted_proxies=(ip_network("192.168.1.2"),))
    monkeypatch.setattr(local_users, "check_connection", lambda peer, local: uid)
    factory: Any = BoundedRequests(server(), most=8)
    first, second, third = (connected(factory, address) for _ in range(3))
    assert [each.transport.disconnected for each in (first, second, third)] == [
        *(False, False),
        limited,
    ]
    monkeypatch.setattr(local_users, "check_connection", lambda peer, local: None)
    assert not connected(factory, "192.168.1.8").transport.disconnected
    # What has ended does not count.
    monkeypatch.setattr(local_users, "check_connection", lambda peer, local: uid)
    first.connectionLost(None)
    assert not connected(factory, address).transport.disconnected


def test_addresses_of_one_network_are_one_holder() -> None:
    assert holder_of("2001:db8::1", None) == holder_of("2001:db8::2", None)
    assert holder_of("2001:db8::1", None) != holder_of("2001:db8:1::1", None)


@pytest.mark.fault("Too many or too slow connections")
def test_connections_that_are_refused_are_few_and_cost_nobody_one(
    factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*ends: Any) -> None:
        raise InvalidInput("Not yours.", code="FORBIDDEN")

    with monkeypatch.context() as patch:
        patch.setattr(local_users, "check_connection", refuse)
        strangers = [connected(factory) for _ in range(MAX_REFUSED + 1)]
    assert [each.transport.disconnected for each in strangers[-2:]] == [False, True]
    assert len(factory.open) == 0
    assert not connected(factory).transport.disconnected
    strangers[0].dataReceived(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert strangers[0].transport.value().startswith(b"HTTP/1.1 403 ")


@pytest.mark.fault("Too many or too slow connections")
async def test_an_application_that_sends_waits_for_a_reader_that_is_slow(factory: Any) -> None:
    channel = connected(factory)
    request = channel.requestFactory(channel, 0)
    channel.pauseProducing()
    message = {"type": "http.response.start", "status": 200, "headers": []}
    sending = asyncio.ensure_future(factory.server.handle_reply(request, message))
    await asyncio.sleep(0)
    assert not sending.done()
    channel.resumeProducing()
    await sending


async def test_a_writer_waits_until_the_reader_disconnects(factory: Any) -> None:
    channel = connected(factory)
    request = channel.requestFactory(channel, 0)
    channel.pauseProducing()
    waiting = asyncio.ensure_future(request.drained())
    await asyncio.sleep(0)
    channel.connectionLost(None)
    await waiting


@pytest.fixture
def socket(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An open websocket, on what was a connection of HTTP."""
    monkeypatch.setattr(WebSocketFactory, "protocol", BoundedSocket)
    factory = WebSocketFactory(server(), reactor=clock)
    socket = factory.buildProtocol(None)
    socket.makeConnection(connected(factory.server_class.http_factory).transport)
    socket.application_queue = asyncio.Queue()
    socket.client_addr = None
    socket.state = socket.STATE_OPEN
    return socket


@pytest.mark.fault("A websocket that floods the server")
def test_no_more_is_read_from_a_websocket_whose_messages_wait(socket: Any, clock: Clock) -> None:
    for _ in range(MAX_WAITING + 1):
        assert socket.transport.producerState == "producing"
        socket.onMessage(b"{}", False)
    assert socket.transport.producerState == "paused"
    clock.advance(sockets.POLL_SECONDS)
    assert socket.transport.producerState == "paused"
    socket.application_queue.get_nowait()
    clock.advance(sockets.POLL_SECONDS)
    assert socket.transport.producerState == "producing"


@pytest.mark.fault("Too many or too slow connections")
async def test_nor_from_one_that_does_not_read_what_is_sent(socket: Any) -> None:
    socket.pauseProducing()
    assert socket.transport.producerState == "paused"
    waiting = asyncio.ensure_future(socket.drained())
    await asyncio.sleep(0)
    assert not waiting.done()
    socket.resumeProducing()
    assert socket.transport.producerState == "producing"
    await waiting


MASKED_FRAME = b"\x81\xff" + (1 << 40).to_bytes(8, "big") + bytes(4)
CLOSED_1009 = b"\x88\x13\x03\xf1message too large"


@pytest.fixture
def receiving(socket: Any) -> Any:
    """A websocket in the state after its handshake, before its first frame."""
    socket.current_frame = None
    socket.inside_message = False
    socket.websocket_version = 13
    return socket


@pytest.fixture
def refused(receiving: Any) -> Any:
    """A websocket whose client has sent the beginning of a message that is too long."""
    socket = receiving
    socket.dataReceived(MASKED_FRAME + b"x" * 1000)
    assert socket.transport.value() == CLOSED_1009
    # autobahn's timer is not of the test's clock
    socket.closeHandshakeTimeoutCall.cancel()
    return socket


@pytest.mark.fault("A websocket that floods the server")
def test_a_client_that_still_sends_a_refused_message_keeps_its_connection(
    refused: Any, clock: Clock
) -> None:
    clock.advance(1)
    refused.onCloseHandshakeTimeout()
    for _ in range(sockets.LINGER_SECONDS - 2):
        refused.dataReceived(b"\xff" * 1000)
        clock.advance(1)
        assert not refused.transport.disconnecting
    clock.advance(1)
    assert refused.transport.disconnecting
    assert refused.transport.value() == CLOSED_1009


@pytest.mark.fault("A websocket that floods the server")
def test_a_client_that_pauses_in_a_refused_message_loses_it(refused: Any, clock: Clock) -> None:
    clock.advance(1)
    refused.onCloseHandshakeTimeout()
    clock.advance(sockets.SILENT_SECONDS - 1.5)
    assert not refused.transport.disconnecting
    clock.advance(1)
    assert refused.transport.disconnecting


def test_a_client_that_answers_the_close_frame_is_let_go_at_once(
    receiving: Any, clock: Clock
) -> None:
    socket = receiving
    socket.dataReceived(b"\x81\xff" + (1 << 20).to_bytes(8, "big") + bytes(4))
    socket.closeHandshakeTimeoutCall.cancel()
    clock.advance(1)
    socket.onCloseHandshakeTimeout()
    socket.dataReceived(b"\xff" * (1 << 20))
    assert not socket.transport.disconnecting
    socket.dataReceived(b"\x88\x82" + bytes(4) + b"\x03\xf1")
    assert socket.transport.disconnecting
    assert clock.getDelayedCalls() == []


def test_a_long_message_may_be_sent(socket: Any) -> None:
    """A limit for what comes must not keep a long answer from its page."""
    socket.maxMessagePayloadSize = 0
    socket.serverSend("x" * (3 << 20))
    assert len(socket.transport.value()) > 3 << 20


@pytest.mark.fault("A websocket that floods the server")
@pytest.mark.parametrize("state", ["STATE_CLOSING", "STATE_CLOSED"])
@pytest.mark.parametrize(
    "message",
    [{"type": "websocket.close", "code": 1008}, {"type": "websocket.send", "text": "late"}],
)
def test_what_a_consumer_says_to_a_closing_socket_is_nothing(
    socket: Any, state: str, message: dict[str, Any]
) -> None:
    """It may refuse a frame, or answer one, whose sender has closed since."""
    socket.state = getattr(socket, state)
    socket.handle_reply(message)
    assert socket.transport.value() == b""
