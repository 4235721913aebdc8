"""Calls the server of the data folder: JSON, and streams of events.

`http.client` and not httpx, which takes half of a verb's processor time to import.
"""

import http.client
import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from codeinfo_cli import errors, project, server, terminal
from codeinfo_cli.errors import CliError

# A call of a tool ends after 600 s on the server.
TIMEOUT_SECONDS = 620.0
# A stream sends a comment after 15 s of silence.
SILENCE_SECONDS = 60.0
JSON_TYPE, EVENTS_TYPE = "application/json", "text/event-stream"


class Client:
    """The API of a live server. Each call has a connection of its own.

    Raises CliError: the server's error, or SERVER_LOST if it does not answer.
    """

    def __init__(
        self, address: server.Address, data: Path, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self.address = address
        self.data = data
        self._timeout = timeout

    def get(self, path: str, **query: str) -> bytes:
        """Return the JSON of a GET."""
        return self._call("GET", f"{path}?{urlencode(query)}" if query else path, None)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """Return the JSON of a POST."""
        return self._call("POST", path, body or {})

    def events(self, path: str, body: Mapping[str, Any]) -> Generator[bytes, None, None]:
        """Yield the data of each event of a stream; closing the iterator ends the stream."""
        with self._response("POST", path, body, EVENTS_TYPE, SILENCE_SECONDS) as response:
            if not (response.getheader("Content-Type") or "").startswith(EVENTS_TYPE):
                raise errors.of_response(response.status, response.read())
            for line in response:
                if line.startswith(b"data: "):
                    yield line[6:].rstrip(b"\n")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        with self._response(method, path, body, JSON_TYPE, self._timeout) as response:
            content = response.read()
            if response.status >= 300:
                raise errors.of_response(response.status, content)
            return content

    @contextmanager
    def _response(
        self, method: str, path: str, body: Mapping[str, Any] | None, accept: str, timeout: float
    ) -> Iterator[http.client.HTTPResponse]:
        parts = urlsplit(self.address.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
        headers = {"Authorization": f"Bearer {self.address.token}", "Accept": accept}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = JSON_TYPE
        try:
            connection.request(method, path, content, headers)
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from error
        finally:
            connection.close()

    def _lost(self, error: Exception) -> CliError:
        if server.running(self.data) == self.address:
            reason = str(error) or type(error).__name__
            message = f"The server at {self.address.url} does not answer: {reason}"
        else:
            message = "The server stopped before it answered."
        log = self.data / "logs" / "server.log"
        return CliError(message, "SERVER_LOST", next_step=f"Try again; {log} may say why.")


@contextmanager
def connected() -> Iterator[Client]:
    """Use the server of the data folder; start one if none is running. Raises CliError."""
    data = project.data_dir()
    if server.running(data) is None:
        terminal.note(f"Starting codeinfo in the background (data folder {data}) …")
    try:
        with server.attached(data) as address:
            if address.version != server.VERSION:
                versions = f"version {address.version}, and this command {server.VERSION}"
                terminal.note(f"The server is {versions}: codeinfo stop ends it.")
            yield Client(address, data)
    except server.ServerUnavailable as error:
        raise CliError(str(error), "SERVER_UNAVAILABLE") from error


def if_running(timeout: float = TIMEOUT_SECONDS) -> Client | None:
    """Return a client of the running server, or None. Starts none."""
    data = project.data_dir()
    address = server.running(data)
    return Client(address, data, timeout) if address else None
