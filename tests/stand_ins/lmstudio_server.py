"""A stand-in for LM Studio on a real socket, driven by scripts.

    with LMStudioStandIn() as server:
        ...                                    # the address is server.url; request model "tool", …
        server.predictions[-1].request         # the creationParameter of the last prediction
        server.predictions[-1].ended.wait(30)  # then see `.cancelled` and `.client_left`

The model's key selects the script: one of `lmstudio_scripts.SCRIPTS` and `NUMBERED`, or one that a
test adds to `server.scripts`. `tests.stand_ins.server` describes pacing and holding. By hand:
`make stand-ins`.

It implements the protocol between LM Studio and its SDK: the HTTP request GET /lmstudio-greeting,
and five websockets with JSON frames: a handshake, then calls (rpcCall) and channels
(channelCreate). The REST API has GET /v1/models and POST /v1/embeddings. With a `token`, both
require it.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Ping, Request
from wsproto.events import TextMessage as WebsocketText

from apps.core.types import JSON
from tests.stand_ins.lmstudio_scripts import (
    NOT_FOUND,
    SCRIPTS,
    Close,
    Fault,
    PredictionScript,
    RawText,
    Send,
    Step,
    script_for,
    steps_of,
)
from tests.stand_ins.openai_scripts import Cut, Stall
from tests.stand_ins.openai_server import embed, embeddings
from tests.stand_ins.server import Hangup, StandIn

NAMESPACES = frozenset({"/llm", "/embedding", "/system", "/files", "/repository"})
EMBEDDER = "text-embedding-standin"


def llm(key: str) -> JSON:
    """Return a downloaded language model, an entry of listDownloadedModels."""
    return {
        "type": "llm",
        "modelKey": key,
        "format": "gguf",
        "displayName": key.replace("-", " ").title(),
        "path": f"stand-in/{key}/{key}-Q4_K_M.gguf",
        "sizeBytes": 4_920_739_232,
        "vision": False,
        "trainedForToolUse": "tool" in key,
        "maxContextLength": 131_072,
        "paramsString": "8B",
        "architecture": "llama",
    }


def embedder(key: str) -> JSON:
    return {
        "type": "embedding",
        "modelKey": key,
        "format": "gguf",
        "displayName": key,
        "path": f"stand-in/{key}.gguf",
        "sizeBytes": 84_106_624,
        "maxContextLength": 2048,
    }


@dataclass(eq=False)
class Prediction:
    """One prediction.

    frames: the number of messages sent.
    cancelled: set when the client cancels.
    client_left: set when the client disconnects before the end.
    ended: set at the end in any case.
    """

    request: JSON
    frames: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    client_left: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class LMStudioStandIn(StandIn):
    """The server.

    models: the downloaded models.
    listing: a raw frame to send instead of the list of models.
    greets, shakes_hands: False leaves out the greeting or the handshake.
    redirects_to: redirects all HTTP requests.
    opened: the namespaces of the opened websockets.
    """

    def __init__(self, *, port: int = 0, pace: float = 0.0, token: str = "") -> None:
        super().__init__(port=port, pace=pace)
        self.token = token
        self.scripts: dict[str, PredictionScript] = {}
        self.models = [*(llm(key) for key in SCRIPTS), embedder(EMBEDDER)]
        self.listing = ""
        self.redirects_to = ""
        self.greets = True
        self.shakes_hands = True
        self.predictions: list[Prediction] = []
        self.calls: list[str] = []
        self.opened: list[str] = []
        self.handshakes: list[str] = []
        self.requests: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        pairs = (line.split(":", 1) for line in lines[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        if headers.get("upgrade", "").lower() == "websocket" and path in NAMESPACES:
            self.opened.append(path)
            await LMStudioSocket(self, reader, writer).serve(head)
            return
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        body = json.loads(data) if data else None
        self.requests.append((path, headers, body))
        status, answer = self.rest(method, path, headers, body)
        payload = json.dumps(answer).encode()
        location = f"Location: {self.redirects_to}\r\n" if status == 307 else ""
        writer.write(
            f"HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\n{location}"
            f"Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n".encode()
            + payload
        )
        await writer.drain()

    def rest(self, method: str, path: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
        """Return status and body for an HTTP request."""
        if self.redirects_to:
            return 307, {}
        if (method, path) == ("GET", "/lmstudio-greeting"):
            return (200, {"lmstudio": True}) if self.greets else (404, {"error": "Not found"})
        if self.token and headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"error": {"message": "An LM Studio API token is required"}}
        match method, path:
            case "GET", "/v1/models":
                data = [{"id": m["modelKey"], "object": "model"} for m in self.models]
                return 200, {"object": "list", "data": data}
            case "POST", "/v1/embeddings":
                return 200, embeddings(body)
            case _:
                return 404, {"error": f"Unexpected endpoint or method. ({method} {path})"}

    def script(self, key: str) -> PredictionScript | None:
        return script_for(key, self.scripts)


class LMStudioSocket:
    """Serves one websocket: its handshake, calls and channels."""

    def __init__(
        self, server: LMStudioStandIn, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server, self.reader, self.writer = server, reader, writer
        self.wire = WSConnection(ConnectionType.SERVER)
        self.channels: dict[int, tuple[Prediction, asyncio.Task[None]]] = {}
        self.authenticated = False

    async def serve(self, head: bytes) -> None:
        data, partial = head, ""
        try:
            while data:
                self.wire.receive_data(data)
                for event in self.wire.events():
                    match event:
                        case Request():
                            await self.write(self.wire.send(AcceptConnection()))
                        case WebsocketText(data=text, message_finished=finished):
                            partial += text
                            if finished:
                                await self.receive(json.loads(partial))
                                partial = ""
                        case Ping():
                            await self.write(self.wire.send(event.response()))
                        case CloseConnection():
                            await self.write(self.wire.send(event.response()))
                            return
                        case BytesMessage():
                            raise TypeError("the SDK sends text only")
                data = await self.reader.read(65_536)
        finally:
            await self.leave()

    async def leave(self) -> None:
        """Abort the predictions of a client that has disconnected, as LM Studio does."""
        for prediction, task in list(self.channels.values()):
            if not prediction.ended.is_set():
                prediction.client_left.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            prediction.ended.set()

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def send(self, message: JSON | str) -> None:
        text = message if isinstance(message, str) else json.dumps(message)
        await self.write(self.wire.send(WebsocketText(text)))

    async def receive(self, message: JSON) -> None:
        match message:
            case {"authVersion": 1} if not self.authenticated:
                await self.shake_hands(message)
            case {"type": "rpcCall", "callId": id, "endpoint": endpoint}:
                await self.reply(id, endpoint, message.get("parameter"))
            case {"type": "channelCreate", "channelId": id, "endpoint": "getOrLoad"}:
                await self.load(id, message["creationParameter"]["identifier"])
            case {"type": "channelCreate", "channelId": id, "endpoint": "predict"}:
                self.predict(id, message["creationParameter"])
            case {"type": "channelSend", "channelId": id, "message": {"type": "cancel"}}:
                await self.cancel(id)
            case _:
                raise TypeError(f"no such message: {message}")

    async def shake_hands(self, message: JSON) -> None:
        if not self.server.shakes_hands:
            return
        token = f"sk-lm-{message['clientIdentifier']}:{message['clientPasskey']}"
        self.server.handshakes.append(token)
        self.authenticated = not self.server.token or token == self.server.token
        refusal: JSON = {"success": False, "error": {"title": "Invalid API token"}}
        await self.send({"success": True} if self.authenticated else refusal)
        if not self.authenticated:
            raise Hangup

    async def reply(self, id: int, endpoint: str, parameter: Any) -> None:
        self.server.calls.append(endpoint)
        answers: dict[str, Callable[[], Any]] = {
            "listDownloadedModels": lambda: self.server.models,
            "listLoaded": list,
            "getModelInfo": lambda: self.instance(parameter["specifier"]["query"]["identifier"]),
            "embedString": lambda: {"embedding": embed(parameter["inputString"])},
        }
        if endpoint == "listDownloadedModels" and self.server.listing:
            await self.send(self.server.listing)
            return
        if endpoint not in answers:
            error = {"title": f"No such endpoint: {endpoint}"}
            await self.send({"type": "rpcError", "callId": id, "error": error})
            return
        await self.send({"type": "rpcResult", "callId": id, "result": answers[endpoint]()})

    def instance(self, key: str) -> JSON:
        """Return the description of a loaded model."""
        script = self.server.script(key)
        context = script.context if script else 2048
        return llm(key) | {
            "identifier": key,
            "instanceReference": f"ref-{key}",
            "contextLength": context,
        }

    async def load(self, id: int, key: str) -> None:
        script = self.server.script(key)
        if script is None:
            await self.fail(id, NOT_FOUND)
            return
        if not script.loads:
            await self.send_on_channel(id, {"type": "alreadyLoaded", "info": self.instance(key)})
        else:
            await self.send_on_channel(
                id, {"type": "startLoading", "identifier": key, "info": llm(key)}
            )
            for progress in script.loads:
                await self.server.pause(0.3)
                await self.send_on_channel(id, {"type": "loadProgress", "progress": progress})
            await self.send_on_channel(id, {"type": "loadSuccess", "info": self.instance(key)})
        await self.send({"type": "channelClose", "channelId": id})

    async def send_on_channel(self, id: int, message: JSON) -> None:
        await self.send({"type": "channelSend", "channelId": id, "message": message})

    async def fail(self, id: int, fault: Fault) -> None:
        error: JSON = {"title": fault.title, "cause": fault.cause, "suggestion": ""}
        if fault.code:
            error["displayData"] = {"code": fault.code, "query": {}, "availableModelsSample": []}
        await self.send({"type": "channelError", "channelId": id, "error": error})

    def predict(self, id: int, request: JSON) -> None:
        prediction = Prediction(request)
        self.server.predictions.append(prediction)
        task = asyncio.create_task(self.generate(id, prediction))
        self.channels[id] = prediction, task

    async def generate(self, id: int, prediction: Prediction) -> None:
        key = prediction.request["modelSpecifier"]["query"]["identifier"]
        script = self.server.script(key)
        assert script is not None, "a model is loaded before it is asked"
        for step in steps_of(script, prediction.request):
            if script.cut_after is not None and prediction.frames >= script.cut_after:
                self.cut()
            await self.perform(id, key, step, prediction)
        prediction.ended.set()

    async def perform(self, id: int, key: str, step: Step, prediction: Prediction) -> None:
        match step:
            case Stall():
                await asyncio.Event().wait()
            case Cut():
                self.cut()
            case Close():
                await self.send({"type": "channelClose", "channelId": id})
            case RawText(text=text):
                await self.send(text)
            case Fault():
                await self.fail(id, step)
            case Send(message=message, wait=wait):
                await self.server.pause(wait)
                await self.server.gate()
                await self.send_on_channel(id, self.complete(key, message))
                prediction.frames += 1

    def cut(self) -> None:
        # Without a closing handshake, as when the process is killed.
        self.writer.transport.abort()
        raise Hangup

    def complete(self, key: str, message: JSON) -> JSON:
        """Add the model and its configuration to a success message."""
        if message["type"] != "success":
            return message
        nothing: JSON = {"fields": []}
        return message | {
            "modelInfo": self.instance(key),
            "loadModelConfig": nothing,
            "predictionConfig": nothing,
        }

    async def cancel(self, id: int) -> None:
        prediction, task = self.channels[id]
        prediction.cancelled.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        key = prediction.request["modelSpecifier"]["query"]["identifier"]
        stats = {"type": "success", "stats": {"stopReason": "userStopped"}}
        await self.send_on_channel(id, self.complete(key, stats))
        await self.send({"type": "channelClose", "channelId": id})
        prediction.ended.set()
