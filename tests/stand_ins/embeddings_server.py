"""A small OpenAI-compatible embedding server on a real socket, driven by scripts.

    with EmbeddingsServer() as server:
        server.script.append(Reply(429, {"error": "slow down"}, {"Retry-After": "0"}))

It sends scripted replies first, in order. After them each text gets a vector of its characters.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

DIMENSION = 8
VectorOf = Callable[[str], list[float]]


@dataclass(frozen=True)
class Reply:
    """One response: `body` is sent as JSON, or unchanged if it is bytes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: Any


def vector_of(text: str) -> list[float]:
    """Return a deterministic vector, shape (DIMENSION,), never all zero."""
    counts = [1.0] * DIMENSION
    for character in text:
        counts[ord(character) % DIMENSION] += 1
    return counts


def answer_to(texts: list[str], vector_of: VectorOf = vector_of) -> dict[str, Any]:
    """Return a response body. Its entries are not in the order of the texts, which is allowed."""
    data = [{"index": place, "embedding": vector_of(text)} for place, text in enumerate(texts)]
    return {"object": "list", "data": data[::-1]}


class EmbeddingsServer:
    def __init__(self) -> None:
        self.script: list[Reply] = []
        self.requests: list[Request] = []
        self.models: list[dict[str, Any]] = [{"id": "text-embedding-small"}, {"id": "chatter"}]
        self.before_answer: Callable[[], object] = lambda: None
        self.vector_of: VectorOf = vector_of  # another one is another model
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def texts(self) -> list[list[str]]:
        """The texts of the embedding requests, one list for each."""
        return [each.body["input"] for each in self.requests if each.path == "/v1/embeddings"]

    def reply_to(self, request: Request) -> Reply:
        with self.lock:
            self.requests.append(request)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            self.before_answer()
            return self._next(request)
        finally:
            with self.lock:
                self.in_flight -= 1

    def _next(self, request: Request) -> Reply:
        with self.lock:
            if self.script:
                return self.script.pop(0)
        if request.path == "/v1/models":
            return Reply(body={"object": "list", "data": self.models})
        if request.path == "/v1/embeddings":
            return Reply(body=answer_to(request.body["input"], self.vector_of))
        return Reply(404, {"error": "no such address"})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class SmallServer(EmbeddingsServer):
    """Refuses more than `most` texts, and texts of more than `longest` characters."""

    def __init__(self, most: int, longest: int, status: int = 400) -> None:
        super().__init__()
        self.most, self.longest, self.status = most, longest, status

    def reply_to(self, request: Request) -> Reply:
        texts = request.body["input"] if request.path == "/v1/embeddings" else []
        if len(texts) > self.most:
            self.requests.append(request)
            return Reply(413, {"error": {"message": f"batch size is above {self.most}"}})
        if any(len(text) > self.longest for text in texts):
            self.requests.append(request)
            return Reply(self.status, {"error": "input is too large to process"})
        return super().reply_to(request)


def _handler_for(server: EmbeddingsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # One connection for each request, so that closing the server waits for none.
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            self._answer(json.loads(self.rfile.read(length)))

        def _answer(self, body: Any) -> None:
            reply = server.reply_to(Request(self.path, dict(self.headers), body))
            content = (
                reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            )
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except ConnectionError:
                return  # the client has disconnected, as some tests do

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler
