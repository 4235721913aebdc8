"""A stand-in for an OpenAI-compatible server on a real socket, driven by scripts.

In a test:

    with OpenAIStandIn() as server:            # pace 0: no waits
        configure(openai_base_url=server.url)
        ...                                    # request model "tool", "think", "cut-40", …
        server.exchanges[-1].body              # the body of the last request
        server.exchanges[-1].client_left.wait(5)   # True if the client closed before the end

The model's name selects the script: one of `openai_scripts.SCRIPTS` and `NUMBERED`, or one that a
test adds: `server.scripts["mine"] = Script([[*say("Hi"), *end()]])`. `tests.stand_ins.server`
describes pacing and holding.

By hand, and for browser tests:

    python -m tests.stand_ins.openai_server --port 9099 --pace 1
    CODEINFO_OPENAI_BASE_URL=http://127.0.0.1:9099/v1 make run

It answers GET /v1/models, POST /v1/chat/completions (streamed) and POST /v1/embeddings. To control
it from another process, use GET /control (the requests) and POST /control {"pace": 0.1}.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import math
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apps.core.types import JSON
from tests.stand_ins.openai_scripts import (
    SCRIPTS,
    Cut,
    Delta,
    ErrorFrame,
    Finish,
    Raw,
    Script,
    Stall,
    Status,
    Step,
    Usage,
    script_for,
    steps_of,
)
from tests.stand_ins.server import Hangup, StandIn

EMBEDDING_MODEL = "text-embedding-standin"
DIMENSION = 64


@dataclass(eq=False)
class RecordedRequest:
    """One request.

    frames: the number of frames sent.
    client_left: set when the client closes before the end.
    done: set when the response has ended.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    frames: int = 0
    client_left: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


class OpenAIStandIn(StandIn):
    """The server. With a `key`, requests without it get 401."""

    def __init__(self, *, port: int = 0, pace: float = 0.0, key: str = "") -> None:
        super().__init__(port=port, pace=pace)
        self.key = key
        self.scripts: dict[str, Script] = {}
        self.models = [*SCRIPTS, EMBEDDING_MODEL]
        self.exchanges: list[RecordedRequest] = []

    @property
    def url(self) -> str:
        return f"http://{self.address}/v1"

    @property
    def chats(self) -> list[RecordedRequest]:
        """The requests for chat completions, in order."""
        return [item for item in self.exchanges if item.path == "/v1/chat/completions"]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ScriptedResponse(self, reader, writer).serve()


class ScriptedResponse:
    """Serves one connection: one request and its response."""

    # The end of a complete stream.
    last = b"data: [DONE]\n\n"

    def __init__(
        self, server: OpenAIStandIn, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server, self.reader, self.writer = server, reader, writer
        self.cut_after: int | None = None
        self.chunked = True

    async def serve(self) -> None:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        pairs = (line.split(":", 1) for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        data = await self.reader.readexactly(int(headers.get("content-length", 0)))
        body = json.loads(data) if data else None
        self.exchange = RecordedRequest(method, path.partition("?")[0], headers, body)
        if self.exchange.path == "/control":
            await self.control()
            return
        self.server.exchanges.append(self.exchange)
        key = headers.get("authorization", "").removeprefix("Bearer ")
        if self.server.key and key != self.server.key:
            await self.refuse(Status(401, f"Incorrect API key provided: {key}"))
        else:
            await self.route(method, body)

    async def route(self, method: str, body: Any) -> None:
        match method, self.exchange.path:
            case "GET", "/v1/models":
                entries = [{"id": name, "object": "model"} for name in self.server.models]
                await self.send(200, {"object": "list", "data": entries})
            case "POST", "/v1/embeddings":
                await self.send(200, embeddings(body))
            case "POST", "/v1/chat/completions":
                await self.chat(body)
            case _:
                await self.refuse(Status(404, "no such path"))

    async def control(self) -> None:
        if self.exchange.method == "POST":
            self.server.pace = float(self.exchange.body["pace"])
        exchanges = [
            {"path": e.path, "body": e.body, "frames": e.frames, "left": e.client_left.is_set()}
            for e in self.server.exchanges
        ]
        await self.send(200, {"pace": self.server.pace, "exchanges": exchanges})

    async def refuse(self, status: Status) -> None:
        code = status.error or str(status.code)
        error = {"message": status.message, "type": "scripted", "code": code}
        await self.send(status.code, {"error": error}, status.headers)

    async def send(self, code: int, body: JSON, headers: tuple[tuple[str, str], ...] = ()) -> None:
        data = json.dumps(body).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self.writer.write(
            f"HTTP/1.1 {code} Scripted\r\nContent-Type: application/json\r\n{more}"
            f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode()
            + data
        )
        await self.writer.drain()
        self.exchange.done.set()

    async def chat(self, body: JSON) -> None:
        await self.play(script_for(body["model"], self.server.scripts), body)

    async def play(self, script: Script | None, body: JSON) -> None:
        steps: list[Step] = []
        if script is None:
            steps = [Status(404, f"The model {body['model']!r} does not exist")]
        elif refused := [name for name in script.refuses if name in body]:
            steps = [Status(400, f"Unrecognized request argument: {refused[0]}")]
        else:
            steps = list(self.steps_of(script, body))
            self.cut_after, self.chunked = script.cut_after, not script.quiet
        if steps and isinstance(steps[0], Status):
            await self.refuse(steps[0])
        else:
            await self.stream_until_left(steps)

    def steps_of(self, script: Script, body: JSON) -> Iterable[Step]:
        """Return the steps of the round that a request starts."""
        return steps_of(script, body)

    def frame(self, step: Step, body: JSON) -> bytes:
        return frame(step, body["model"])

    async def stream_until_left(self, steps: list[Step]) -> None:
        framing = "Transfer-Encoding: chunked\r\n" if self.chunked else ""
        self.writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}"
            "Connection: close\r\n\r\n".encode()
        )
        streaming = asyncio.ensure_future(self.stream(steps, self.exchange.body))
        leaving = asyncio.ensure_future(self.reader.read(1))
        await asyncio.wait({streaming, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not streaming.done():
            self.exchange.client_left.set()
        for task in (streaming, leaving):
            task.cancel()
        await asyncio.gather(streaming, leaving, return_exceptions=True)
        self.exchange.done.set()

    async def stream(self, steps: list[Step], body: JSON) -> None:
        for step in steps:
            if isinstance(step, Delta):
                await self.server.pause(step.wait)
            if isinstance(step, Stall):
                await asyncio.Event().wait()
            if isinstance(step, Cut):
                raise Hangup
            if isinstance(step, Usage) and not body.get("stream_options"):
                continue
            await self.server.gate()
            await self.write(self.frame(step, body))
            self.exchange.frames += 1
        await self.write(self.last)
        if self.chunked:
            self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def write(self, data: bytes) -> None:
        cut = self.cut_after is not None and len(data) > self.cut_after
        if self.cut_after is not None:
            data = data[: self.cut_after]
            self.cut_after -= len(data)
        if data:
            framed = b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data
            self.writer.write(framed)
        await self.writer.drain()
        if cut:
            raise Hangup


def frame(step: Step, model: str) -> bytes:
    """Encode a step as a server-sent event."""
    chunk: JSON = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model}
    match step:
        case Raw(data=data):
            return data
        case Delta(body=delta):
            chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": None}]
        case Finish(reason=reason):
            chunk["choices"] = [{"index": 0, "delta": {}, "finish_reason": reason}]
        case Usage(prompt=prompt, completion=completion):
            chunk["choices"] = []
            chunk["usage"] = {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            }
        case ErrorFrame(message=message):
            chunk = {"error": {"message": message, "type": "server_error", "code": 500}}
        case _:
            raise TypeError(f"{step} is no frame")
    return f"data: {json.dumps(chunk)}\n\n".encode()


def embed(text: str) -> list[float]:
    """Return a unit vector, shape (DIMENSION,): texts that share words have a high cosine."""
    vector = [0.0] * DIMENSION
    for word in text.lower().split() or [""]:
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % DIMENSION] += 1.0 if digest[1] % 2 else -1.0
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / norm for x in vector] if norm else [1.0] + [0.0] * (DIMENSION - 1)


def embeddings(body: JSON) -> JSON:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    packed = body.get("encoding_format") == "base64"

    def entries() -> Iterator[JSON]:
        for index, text in enumerate(texts):
            vector: Any = embed(text)
            if packed:
                vector = base64.b64encode(struct.pack(f"<{DIMENSION}f", *vector)).decode()
            yield {"object": "embedding", "index": index, "embedding": vector}

    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "model": body["model"], "data": list(entries()), "usage": usage}


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible server.")
    parser.add_argument("--port", type=int, default=9099)
    parser.add_argument("--pace", type=float, default=1.0, help="1: waits as written, 0: none")
    parser.add_argument("--key", default="", help="refuse requests without this key")
    options = parser.parse_args()
    with OpenAIStandIn(port=options.port, pace=options.pace, key=options.key) as server:
        print(f"{server.url}\nmodels: {', '.join(server.models)}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
