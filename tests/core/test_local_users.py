"""Other accounts of this machine: whose connections over loopback are served."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from apps.core.errors import InvalidInput, Unavailable
from apps.core.security import local_users, peer_users
from tests.browser.product import Product, running

pytestmark = pytest.mark.door

PATIENCE = 60
NOBODY = 65534
# Becomes another user, sends what it reads, and writes what is answered.
CLIENT = """
import encodings.idna, os, socket, sys
os.setgroups([]), os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
line.sendall(sys.stdin.buffer.read())
if sys.argv[3] == "leave":
    sys.exit()
while data := line.recv(65536):
    sys.stdout.buffer.write(data)
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_user(uid: int, port: int, request: bytes, how: str = "stay") -> bytes:
    """What a program of user `uid` gets for a request to `port`."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(port), str(uid), how],
        input=request,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    return done.stdout


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


UPGRADE = (
    *("Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("users")) as product:
        yield product


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("all"), CODEINFO_LOOPBACK_USERS="any") as product:
        yield product


def port_of(served: Product) -> int:
    return urlsplit(served.url).port or 0


REQUESTS = {
    "the API": (0, get("/ingest/roots")),
    "a page": (0, get("/")),
    "health": (0, get("/health")),
    "a static file": (0, get("/static/css/tokens.css")),
    "a websocket": (0, get("/ws", *UPGRADE)),
    "MCP": (0, get("/mcp", method="POST")),
    "the port of questions": (1, get("/", method="POST")),
    "the port of agents": (2, get("/", method="POST")),
}


@pytest.mark.fault("Other users of the machine")
@needs_root
@pytest.mark.parametrize("door", REQUESTS)
def test_another_user_is_refused_and_told_the_setting(served: Product, door: str) -> None:
    further, request = REQUESTS[door]
    answer = as_user(NOBODY, port_of(served) + further, request)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b'"FORBIDDEN"' in answer and b"CODEINFO_LOOPBACK_USERS" in answer


@pytest.mark.fault("Other users of the machine")
@needs_root
def test_a_request_whose_sender_has_left_already_changes_nothing(served: Product) -> None:
    """The kernel shows the socket of a program that has ended with the uid of root."""
    body = b'{"title": "from a stranger", "model": "search", "provider": "builtin"}'
    length = f"Content-Length: {len(body)}"
    request = get("/conversations", length, "Content-Type: application/json", method="POST") + body
    for _ in range(20):
        as_user(NOBODY, port_of(served), request, "leave")
    assert b" 201 " in as_user(0, port_of(served), request).split(b"\r\n")[0]
    assert len(httpx.get(f"{served.url}/conversations", timeout=PATIENCE).json()["items"]) == 1


# Becomes another user, and opens connections, of which it holds until its input ends what it may.
HOLDER = """
import contextlib, encodings.idna, os, resource, socket, sys
port, uid, count = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
os.setgroups([]), os.setgid(uid), os.setuid(uid)
held = []
for _ in range(count):
    with contextlib.suppress(ConnectionError):
        held.append(socket.create_connection(("127.0.0.1", port), 60))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by(uid: int, port: int, count: int) -> Iterator[None]:
    """Connections of user `uid` on which nothing is sent."""
    command = [sys.executable, "-c", HOLDER, str(port), str(uid), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout and process.stdout.readline() == b"held\n"
            yield
        finally:
            process.kill()


@pytest.mark.fault("Other users of the machine")
@needs_root
@pytest.mark.parametrize(("server", "answered"), [("served", b" 403 "), ("open_to_all", b" 200 ")])
def test_connections_that_another_user_holds_leave_room_for_the_owner(
    request: pytest.FixtureRequest, server: str, answered: bytes
) -> None:
    product: Product = request.getfixturevalue(server)
    port = port_of(product)
    with held_by(NOBODY, port, 1200):
        for _ in range(20):
            assert httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).status_code == 200
        assert b" 200 " in as_user(0, port, get("/version")).split(b"\r\n")[0]
    # They count no longer when they have ended, which the server reads before this answer.
    assert httpx.get(f"{product.url}/version", timeout=PATIENCE).status_code == 200
    assert answered in as_user(NOBODY, port, get("/version")).split(b"\r\n")[0]


@pytest.mark.fault("Other users of the machine")
def test_this_user_and_root_are_served(served: Product) -> None:
    assert httpx.get(f"{served.url}/ingest/roots", timeout=PATIENCE).status_code == 200
    if os.geteuid() == 0:
        assert as_user(0, port_of(served), get("/version")).startswith(b"HTTP/1.1 200")


@needs_root
def test_all_users_are_served_by_setting_or_with_a_login(
    open_to_all: Product, tmp_path: Path
) -> None:
    tokens = {"CODEINFO_API_TOKEN": "t", "CODEINFO_MCP_TOKEN": "t"}
    with running(tmp_path, CODEINFO_REQUIRE_LOGIN="true", **tokens) as with_login:
        for product in (open_to_all, with_login):
            answer = as_user(NOBODY, port_of(product), get("/health"))
            assert answer.startswith(b"HTTP/1.1 200")


# The lookup itself


@pytest.fixture(params=[peer_users.from_netlink, peer_users.from_tables])
def lookup(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "mapped"])
def test_the_owner_of_a_connection_is_found(lookup: Any, address: str) -> None:
    bound = "::" if address == "mapped" else address
    family = socket.AF_INET6 if ":" in bound else socket.AF_INET
    dual = address == "mapped"
    with socket.create_server((bound, 0), family=family, dualstack_ipv6=dual) as server:
        to = "127.0.0.1" if dual else address
        client = socket.create_connection((to, server.getsockname()[1]))
        accepted, peer = server.accept()
        with client, accepted:
            assert lookup(peer[:2], accepted.getsockname()[:2]) == os.geteuid()
        assert lookup(peer[:2], accepted_name(server, peer)) is None


def accepted_name(server: socket.socket, peer: Any) -> tuple[str, int]:
    """Our end of a connection that has been closed."""
    return peer[0], server.getsockname()[1]


def test_a_socket_that_listens_is_no_connection(lookup: Any) -> None:
    """Netlink answers with it where the connection is gone."""
    with (
        socket.create_server(("127.0.0.1", 0)) as ours,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        assert lookup(other.getsockname(), ours.getsockname()) is None


def test_a_line_of_the_table_is_read_in_both_families() -> None:
    lines = iter(
        [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid",
            "   0: 0100007F:D936 0100007F:1392 01 00000000:00000000 00:00000000 00000000  1000"
            "        0 4711 1 0000000000000000 20 0 0 10 -1",
            "   1: 0000000000000000FFFF00000100007F:D937 0000000000000000FFFF00000100007F:1392 01 "
            "00000000:00000000 00:00000000 00000000  1001        0 4712 1 0000000000000000 20",
            "   2: 00000000000000000000000001000000:D938 00000000000000000000000001000000:1392 06 "
            "00000000:00000000 00:00000000 00000000     0        0 0 1 0000000000000000 20",
        ]
    )
    found = [(str(a[0]), a[1], b[1], uid, inode) for (a, b), uid, inode in peer_users.rows(lines)]
    assert found == [
        ("127.0.0.1", 55606, 5010, 1000, 4711),
        ("127.0.0.1", 55607, 5010, 1001, 4712),
        ("::1", 55608, 5010, 0, 0),
    ]


# The rule


@pytest.mark.parametrize(
    ("uid", "peer", "changes", "served"),
    [
        (os.geteuid(), "127.0.0.1", {}, True),
        (0, "127.0.0.1", {}, True),
        (4711, "127.0.0.1", {}, False),
        (4711, "::1", {}, False),
        (4711, "::ffff:127.0.0.1", {}, False),
        (None, "127.0.0.1", {}, False),  # closed meanwhile
        (4711, "192.168.0.2", {"bind": "0.0.0.0", "allow_open_access": True}, True),
        (4711, "127.0.0.1", {"loopback_users": "any"}, True),
        (4711, "127.0.0.1", {"require_login": True}, True),
        (4711, "127.0.0.1", {"allowed_hosts": ("codeinfo.example",)}, True),
    ],
)
def test_who_is_served(
    uid: int | None,
    peer: str,
    changes: dict[str, Any],
    served: bool,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(**changes)
    monkeypatch.setattr(peer_users, "is_known", lambda: True)
    monkeypatch.setattr(peer_users, "uid_of", lambda peer, local: uid)
    if served:
        local_users.check_connection((peer, 1), ("127.0.0.1", 2))
    else:
        with pytest.raises(InvalidInput, match="CODEINFO_LOOPBACK_USERS"):
            local_users.check_connection((peer, 1), ("127.0.0.1", 2))


def test_where_the_system_cannot_be_asked_now_nobody_is_called_a_stranger_or_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*ends: Any) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(peer_users, "is_known", lambda: True)
    monkeypatch.setattr(peer_users, "uid_of", fail)
    with pytest.raises(Unavailable, match="too many open files"):
        local_users.check_connection(("127.0.0.1", 1), ("127.0.0.1", 2))


def test_where_the_system_does_not_tell_everybody_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_users, "is_known", lambda: False)
    local_users.check_connection(("127.0.0.1", 1), ("127.0.0.1", 2))
