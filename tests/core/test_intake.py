"""What a real server takes in before it answers: bodies, headers, connections, frames.

It refuses at the headers what it will not take, and stores nothing of it.
"""

import json
import os
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from apps.core.security.access import BAD_HOST
from tests.browser.product import SERVE, Product, running

pytestmark = pytest.mark.door

PATIENCE = 90
HUGE = 400_000_000
CAP = 1 << 20
# The server keeps half of them for itself.
DESCRIPTORS = 400
LIMITED = ("/bin/sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$0" "$@"', *SERVE)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("intake")
    (folder / "tmp").mkdir()
    with running(folder, command=LIMITED, TMPDIR=str(folder / "tmp")) as product:
        yield product


def line_to(served: Product, further: int = 0) -> socket.socket:
    address = urlsplit(served.url)
    return socket.create_connection(("127.0.0.1", (address.port or 0) + further), PATIENCE)


def head_of(path: str, *headers: str, host: str = "localhost", method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
    return "\r\n".join([*lines, *headers, "", ""]).encode()


def read_to_the_end(line: socket.socket) -> tuple[int, Any]:
    """The status and the JSON body of an answer after which the server closed the connection."""
    received = b"".join(iter(lambda: line.recv(65536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    assert head, "the connection was closed without an answer"
    return int(head.split()[1]), json.loads(body) if body else None


def answer_to_headers(served: Product, head: bytes, further: int = 0) -> tuple[int, Any]:
    """What is answered to a request whose body is never sent."""
    with closing(line_to(served, further)) as line:
        line.sendall(head)
        return read_to_the_end(line)


def stored(served: Product) -> list[int]:
    """The sizes of the files that the server has open in its folder for temporary files."""
    folder = str(served.data.parent / "tmp")
    sizes = []
    for link in Path(f"/proc/{served.pid}/fd").iterdir():
        try:
            if os.readlink(link).startswith(folder):
                sizes.append(link.stat().st_size)
        except OSError:
            continue
    return sizes


TOO_LARGE = [
    ("/ingest/start", 413, ("code", "PAYLOAD_TOO_LARGE")),
    ("/tools/vector-search", 413, ("error", "PAYLOAD_TOO_LARGE")),
    ("/conversations", 413, ("code", "PAYLOAD_TOO_LARGE")),
    ("/chat", 400, ("code", "PAYLOAD_TOO_LARGE")),
    ("/logs", 400, ("error", "payload too large")),
    ("/ui/ingest/start", 413, ("code", "PAYLOAD_TOO_LARGE")),
    ("/nothing/there", 413, ("code", "PAYLOAD_TOO_LARGE")),
]


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize(("path", "status", "word"), TOO_LARGE)
def test_a_body_that_is_too_long_is_refused_by_its_length_alone(
    served: Product, path: str, status: int, word: tuple[str, str]
) -> None:
    found, body = answer_to_headers(served, head_of(path, f"Content-Length: {HUGE}"))
    assert (found, body[word[0]]) == (status, word[1])
    assert stored(served) == []


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize(("path", "further"), [("/mcp", 0), ("/mcp/chat", 0), ("/x", 1), ("/x", 2)])
def test_an_mcp_endpoint_refuses_it_in_json_rpc(served: Product, path: str, further: int) -> None:
    head = head_of(path, f"Content-Length: {HUGE}")
    found, body = answer_to_headers(served, head, further)
    assert (found, body["error"]["data"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_no_client_is_asked_to_continue_with_a_body_that_is_too_long(served: Product) -> None:
    head = head_of("/conversations", f"Content-Length: {HUGE}", "Expect: 100-continue")
    assert answer_to_headers(served, head)[0] == 413


@pytest.mark.fault("Malformed requests")
def test_the_bytes_of_a_chunked_body_are_counted_as_they_come(served: Product) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with closing(line_to(served)) as line:
        line.sendall(head_of("/conversations", "Transfer-Encoding: chunked"))
        sent = 0
        while sent < 64 * CAP and not select.select([line], [], [], 0)[0]:
            line.sendall(chunk)
            sent += 65536
            assert sum(stored(served)) <= CAP
        found, body = read_to_the_end(line)
    assert (found, body["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert stored(served) == []


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("length", ["Content-Length: 500000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(("path", "further"), [("/conversations", 0), ("/", 0), ("/mcp", 0)])
def test_of_a_body_for_another_host_nothing_is_stored(
    served: Product, path: str, further: int, length: str
) -> None:
    found, body = answer_to_headers(served, head_of(path, length, host="evil.example"))
    if path == "/mcp":
        assert (found, body["error"]["data"]["code"]) == (403, "FORBIDDEN")
    else:
        refused = {"status": "error", "code": "FORBIDDEN", "message": BAD_HOST}
        assert (found, body) == (400, refused)
    assert stored(served) == []


def test_a_client_that_sends_all_of_it_hears_why_it_was_refused(served: Product) -> None:
    answer = httpx.post(f"{served.url}/conversations", json="x" * CAP, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert answer.headers["connection"] == "close"


def test_the_largest_body_is_read(served: Product) -> None:
    empty = len(json.dumps({"message": ""}).encode())
    text = json.dumps({"message": "x" * (CAP - empty)})
    for send in (text.encode(), iter([text.encode()])):
        answer = httpx.post(
            f"{served.url}/conversations",
            content=send,
            headers={"content-type": "application/json"},
            timeout=PATIENCE,
        )
        assert answer.status_code == 400 and answer.json()["error"] == "validation_error"


@pytest.mark.fault("Too many or too slow connections")
@pytest.mark.parametrize(
    "headers",
    [["X-A: b"] * 600, ["X-A: " + "b" * 20_000], [f"X-{n}: {'b' * 2000}" for n in range(20)]],
    ids=["too many", "a long one", "too much of them"],
)
def test_headers_are_bounded(served: Product, headers: list[str]) -> None:
    with closing(line_to(served)) as line:
        line.sendall(head_of("/version", *headers, method="GET"))
        try:
            received = line.recv(65536)
        except ConnectionResetError:
            received = b""
    assert received == b"" or received.startswith(b"HTTP/1.1 400")


@pytest.mark.fault("Too many or too slow connections")
def test_connections_are_bounded_and_the_server_keeps_files_for_its_own_work(
    served: Product,
) -> None:
    with ExitStack() as stack:
        lines = [stack.enter_context(closing(line_to(served))) for _ in range(DESCRIPTORS)]
        # Those over the limit are closed at once; the first of them are served.
        assert lines[-1].recv(1) == b""
        lines[0].sendall(head_of("/static/css/tokens.css", method="GET"))
        assert lines[0].recv(65536).startswith(b"HTTP/1.1 200")
    assert httpx.get(f"{served.url}/health", timeout=PATIENCE).json()["mongoConnected"] is True


def socket_url(served: Product) -> str:
    return f"{served.url.replace('http', 'ws')}/ws"


def upgrade(path: str) -> bytes:
    key = "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw=="
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", key, "Sec-WebSocket-Version: 13")
    return head_of(path, *upgrade, method="GET")


# Path of a websocket → the longest message that it reads.
SOCKETS = {
    "/ws": 1 << 16,
    "/ws/ui/chat/c1": 1 << 18,
    "/ws/ui/ingest": 1 << 18,
    "/ws/ui/ingest?view=foot": 1 << 18,
}
OVER = {"a byte over": 1, "100 MiB": 100 << 20}


def peak_of(served: Product) -> int:
    """The most memory that the server has had, in kB."""
    lines = Path(f"/proc/{served.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


@pytest.mark.fault("A websocket that floods the server")
@pytest.mark.parametrize("fragment", [None, 1 << 13], ids=["whole", "in fragments"])
@pytest.mark.parametrize("over", OVER.values(), ids=OVER)
@pytest.mark.parametrize("path", SOCKETS)
def test_a_message_that_is_too_long_closes_the_websocket(
    served: Product, path: str, over: int, fragment: int | None
) -> None:
    text = "x" * (SOCKETS[path] + over)
    size = fragment or len(text)
    before = peak_of(served)
    link = connect(f"{served.url.replace('http', 'ws')}{path}", compression=None)
    with link, pytest.raises(ConnectionClosedError) as closed:
        link.send(text[at : at + size] for at in range(0, len(text), size))
        while True:
            link.recv(PATIENCE)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009 and closed.value.rcvd.reason.endswith("too large")
    # The kernel's buffers bound what arrives at once, not the length of the message.
    assert peak_of(served) - before < 16_000


def test_bytes_are_counted_and_not_characters(served: Product) -> None:
    with connect(socket_url(served)) as link, pytest.raises(ConnectionClosedError) as closed:
        link.send("…" * (1 << 15))
        link.recv(PATIENCE)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


@pytest.mark.fault("A websocket that floods the server")
@pytest.mark.parametrize("path", ["/ws", "/ws/ui/chat/c1"])
def test_a_client_that_reads_only_after_it_has_sent_learns_it_too(
    served: Product, path: str
) -> None:
    """For some seconds, after which a connection would be dropped whose client is not sending."""
    size = 1 << 40
    with closing(line_to(served)) as line:
        line.sendall(upgrade(path))
        head = line.recv(65536)
        assert head.startswith(b"HTTP/1.1 101")
        line.sendall(b"\x81\xff" + size.to_bytes(8, "big") + bytes(4))
        begun = now = clock_of(served)
        while now < begun + LOOKS_MS:
            line.sendall(b"x" * 65536)
            now = clock_of(served)
        received = head
        while b"\x03\xf1message too large" not in received:
            received += line.recv(65536)


def frame(first: int, payload: bytes) -> bytes:
    """A frame of a client, whose first byte is given; masked with zeros."""
    length = len(payload)
    size = bytes([0x80 | length]) if length < 126 else b"\xff" + length.to_bytes(8, "big")
    return bytes([first]) + size + bytes(4) + payload


NO_JSON, CLOSE = frame(0x81, b"no JSON"), frame(0x88, (1000).to_bytes(2, "big"))
SUBSCRIBE = b'{"protocolVersion":"v1","requestId":"1","type":"subscribe_sidebar"}'
LONG, COMPRESSED = frame(0x81, b"x" * (1 << 19)), frame(0xC1, b"abc")


ON_A_CLOSING_SOCKET = [
    (NO_JSON, CLOSE),
    (NO_JSON, LONG),
    (NO_JSON, COMPRESSED),
    (NO_JSON, CLOSE, NO_JSON),
    (NO_JSON, CLOSE, LONG),
    (frame(0x81, b"x" * 70_000), CLOSE),
    (frame(0x81, SUBSCRIBE), CLOSE),
    (frame(0x81, SUBSCRIBE), LONG),
    (LONG, COMPRESSED),
    (CLOSE, COMPRESSED),
]
# daphne looks once a second for consumers that failed.
LOOKS_MS = 2_500


@pytest.mark.fault("A websocket that floods the server")
def test_a_frame_that_is_refused_on_a_closing_socket_is_no_traceback(served: Product) -> None:
    with ExitStack() as stack:
        for frames in ON_A_CLOSING_SOCKET:
            line = stack.enter_context(closing(line_to(served)))
            line.sendall(upgrade("/ws"))
            assert line.recv(65536).startswith(b"HTTP/1.1 101")
            line.sendall(b"".join(frames))
        begun = now = clock_of(served)
        while now < begun + LOOKS_MS:
            now = clock_of(served)
    assert "Traceback" not in served.log()
    assert "Traceback" not in (served.data / "logs/server.log").read_text()


def clock_of(served: Product) -> int:
    return int(httpx.get(f"{served.url}/health", timeout=PATIENCE).json()["timestamp"])


@pytest.mark.fault("A websocket that floods the server")
def test_a_websocket_takes_no_compressed_frames(served: Product) -> None:
    with connect(socket_url(served), compression="deflate") as link:
        assert link.protocol.extensions == []
