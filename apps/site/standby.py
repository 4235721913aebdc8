"""Responds while the event loop is stalled: `/health` reports it, other requests get 503.

The watchdog's thread accepts connections from the listening socket. It uses neither Django nor the
database.
"""

import json
import socket
from collections.abc import Mapping

from apps.core.monitoring.watchdog import Watchdog

REQUEST_SECONDS = 0.5
REQUEST_BYTES = 4096
# Connections served by one call, so that many connections do not block the thread.
AT_ONCE = 20
RETRY_SECONDS = 5


def answer(listener: socket.socket) -> None:
    """Respond to the connections that wait on `listener`, a non-blocking socket. Called by the
    watchdog at each check of a stall."""
    for _ in range(AT_ONCE):
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # no connection waits, or the server ends
        with connection:
            _serve(connection)


def _serve(connection: socket.socket) -> None:
    try:
        connection.settimeout(REQUEST_SECONDS)
        request = connection.recv(REQUEST_BYTES)
        connection.sendall(_response(request))
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the client has disconnected, or sends nothing


def _response(request: bytes) -> bytes:
    path = request.partition(b"\r\n")[0].split(b" ")[1:2]
    if path and path[0].partition(b"?")[0] == b"/health":
        part = {"state": "bad", "word": "Stalled"}
        return _message(
            "200 OK", {"status": "ok", "degraded": ["eventLoop"], "parts": {"eventLoop": part}}
        )
    message = "The server is busy with one thing and cannot answer now."
    body = {"status": "error", "code": "STALLED", "message": message}
    return _message("503 Service Unavailable", body, f"Retry-After: {RETRY_SECONDS}\r\n")


def _message(status: str, body: Mapping[str, object], headers: str = "") -> bytes:
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        f"{headers}Connection: close\r\n\r\n"
    )
    return head.encode() + data


# Of this process; None if it is not a server.
watchdog: Watchdog | None = None
