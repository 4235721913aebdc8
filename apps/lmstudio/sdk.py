"""LM Studio's Python SDK (`lmstudio`): one short-lived client for each listing or prediction.

A client never reconnects and belongs to one event loop. Closing its socket reliably stops a
generation. The module uses four private parts of the SDK:

- a client of one namespace (the public one opens all five, one after the other);
- a client that does not repeat the greeting;
- the function that opens a websocket;
- the events of a prediction with its tool calls (the public loop runs the tools itself).

So the SDK's version is pinned (requirements/base.in), and tests/lmstudio runs it on a real socket.
"""

import asyncio
import json
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any, Literal, cast

import lmstudio
from lmstudio import _ws_impl
from lmstudio.async_api import AsyncPredictionStream
from lmstudio.json_api import PredictionFragmentEvent, PredictionRxEvent, PredictionToolCallEvent

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.http import limits
from apps.core.http.replies import MAX_LIST
from apps.core.types import JSON
from apps.core.values.addresses import Address
from apps.lmstudio.errors import unavailable
from apps.lmstudio.types import (
    ModelLoading,
    PredictionEnd,
    PredictionEvent,
    PredictionRequest,
    TextFragment,
    ToolCallReceived,
)
from apps.lmstudio.websocket import Bounds, current_bounds, websocket

Namespace = Literal["llm", "system"]
MAX_QUOTED = 300  # characters of what the server says
CONNECT_SECONDS = 10.0
CANCEL_SECONDS = 1.0
# Raised by the SDK for a message of an unexpected shape.
DECODE_ERRORS = (ValueError, TypeError, KeyError, AttributeError)

# The SDK's warning about unknown messages of newer servers quotes them, and so do its log lines,
# whose loggers have the names of its classes. Errors are raised in any case.
warnings.simplefilter("ignore", lmstudio.LMStudioUnknownMessageWarning)
for _name in (
    *("AsyncWebsocketHandler", "_AsyncLMStudioWebsocket", "AsyncRemoteCall", "AsyncLLM"),
    *("ChannelHandler", "RemoteCallHandler", "GetOrLoadEndpoint", "ChatResponseEndpoint"),
):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


_ws_impl.aconnect_ws = websocket  # type: ignore[assignment, attr-defined]


class NamespaceClient(lmstudio.AsyncClient):
    """A client of one namespace, for a server that has answered the greeting."""

    def __init__(self, host: str, namespace: Namespace, token: str) -> None:
        # An empty token keeps the SDK from looking for one in the environment.
        super().__init__(host, token)
        self._ALL_SESSIONS = tuple(
            session
            for session in lmstudio.AsyncClient._ALL_SESSIONS
            if namespace == session.API_NAMESPACE
        )

    async def _ensure_api_host_is_valid(self) -> None:
        """Do nothing: `server.greet` has checked the host."""


@contextmanager
def translate_errors(address: Address, token: str) -> Iterator[None]:
    """Raise the SDK's errors and timeouts in the block as Unavailable (see `failures`)."""
    try:
        yield
    except (lmstudio.LMStudioError, TimeoutError, *DECODE_ERRORS) as error:
        raise _to_unavailable(error, address, token) from error


@asynccontextmanager
async def open_client(
    address: Address, host: str, namespace: Namespace, token: str, max_message: int
) -> AsyncIterator[NamespaceClient]:
    """Connect a client. Leaving the block closes it and stops generation. Raises Unavailable.

    max_message: bytes of one message of the server.
    """
    client = NamespaceClient(host, namespace, token)
    bounds = Bounds(max_message)
    current_bounds.set(bounds)
    try:
        with translate_errors(address, token):
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.__aenter__()
        yield client
    except Unavailable as error:
        if bounds.refused:
            raise unavailable(f"LM Studio sent {bounds.refused}.") from error
        raise
    finally:
        await client.aclose()


async def downloaded_models(address: Address, host: str, token: str) -> Any:
    """Return the raw response: the SDK's parser fails at the first model that it does not know."""
    async with open_client(address, host, "system", token, MAX_LIST) as client:
        with translate_errors(address, token):
            return await client.system.remote_call("listDownloadedModels")


async def predict(
    address: Address,
    host: str,
    token: str,
    model: str,
    build_request: Callable[[int | None], PredictionRequest],
) -> AsyncGenerator[PredictionEvent, None]:
    """Load a model if necessary and stream one prediction; PredictionEnd is last.

    build_request: called with the model's context length in tokens (None: unknown).

    Closing the generator cancels the generation and closes the connection. Raises Unavailable.
    """
    async with open_client(address, host, "llm", token, limits.MAX_FRAME_BYTES) as client:
        loading = _Loading(client, model)
        async with aclosing(loading.progress_events()) as progress_events:
            async for progress_event in progress_events:
                yield progress_event
        with translate_errors(address, token):
            handle = await loading.done
            context = await handle.get_context_length()
        # An error of the SDK about our request is a bug and propagates.
        prediction = await _start_prediction(
            handle, build_request(context if context > 0 else None)
        )
        async with aclosing(_events(address, token, prediction)) as events:
            async for event in events:
                yield _to_event(event)
        with translate_errors(address, token):
            stats = prediction.result().stats
        yield PredictionEnd(
            stats.stop_reason,
            stats.prompt_tokens_count,
            stats.predicted_tokens_count,
            stats.total_tokens_count,
        )


class _Loading:
    """Loads a model, which may take minutes. `done` is the task that returns its handle."""

    def __init__(self, client: NamespaceClient, model: str) -> None:
        self._progress: asyncio.Queue[ModelLoading | None] = asyncio.Queue()
        self.done = asyncio.create_task(client.llm.model(model, on_load_progress=self._loaded))
        self.done.add_done_callback(lambda _: self._progress.put_nowait(None))

    def _loaded(self, progress: float) -> None:
        # 1.0 is also reported for a model that was already loaded: that is not progress.
        if progress < 1:
            self._progress.put_nowait(ModelLoading())

    async def progress_events(self) -> AsyncGenerator[ModelLoading, None]:
        """Yield an event for each step, until the model is loaded or has failed."""
        try:
            while progress_event := await self._progress.get():
                yield progress_event
        finally:
            self.done.cancel()


async def _start_prediction(
    handle: lmstudio.AsyncLLM, request: PredictionRequest
) -> AsyncPredictionStream:
    # The default policy silently drops the beginning of the prompt: the instructions.
    config: JSON = {"contextOverflowPolicy": "stopAtLimit"}
    if request.tools:
        config["rawTools"] = {"type": "toolArray", "tools": request.tools}
    return await handle.respond_stream(
        _deep_copy({"messages": request.messages}),
        config=_deep_copy(config),
        # The server reports progress only if there is a callback.
        on_prompt_processing_progress=lambda progress: None,
    )


def _deep_copy(value: JSON) -> Any:
    """Copy each part: the SDK takes an object that occurs twice for a cycle."""
    return json.loads(json.dumps(value))


async def _events(
    address: Address, token: str, prediction: AsyncPredictionStream
) -> AsyncGenerator[PredictionRxEvent, None]:
    with translate_errors(address, token):
        await prediction.start()
    # Keep a reference: the stream drops its channel before it could be cancelled.
    channel = prediction._channel
    assert channel is not None
    stream = cast(AsyncGenerator[PredictionRxEvent, None], prediction._iter_events())
    async with aclosing(stream):
        try:
            while True:
                with translate_errors(address, token):
                    event = await anext(stream, None)
                if event is None:
                    return
                yield event
        except (GeneratorExit, asyncio.CancelledError):
            # The consumer has left. Both this and closing the socket stop the generation.
            with suppress(lmstudio.LMStudioError, TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await channel.cancel()
            raise


def _to_event(event: PredictionRxEvent) -> PredictionEvent:
    match event:
        case PredictionFragmentEvent(fragment):
            return TextFragment(fragment.content, fragment.reasoning_type)
        case PredictionToolCallEvent(request):
            return ToolCallReceived(request.id, request.name, request.arguments)
        case _:
            return ModelLoading()


def _to_unavailable(error: Exception, address: Address, token: str) -> Unavailable:
    """Return Unavailable for an error of the SDK, or for an error inside the SDK."""
    match error:
        case lmstudio.LMStudioModelNotFoundError():
            return unavailable(
                "LM Studio does not have this model: choose another one, or download it there.",
                retryable=False,
            )
        case lmstudio.LMStudioServerError() if str(error).startswith("Authentication failed"):
            return unavailable(_token_message(token), retryable=False)
        case lmstudio.LMStudioChannelClosedError() | lmstudio.LMStudioRuntimeError():
            return unavailable("LM Studio ended the answer before it was complete.")
        case lmstudio.LMStudioPredictionError() if "tool call request" in str(error):
            return unavailable("The model wrote a tool call that LM Studio could not read.")
        case lmstudio.LMStudioServerError():
            return unavailable(f"LM Studio failed: {_server_message(error, token)}")
        case lmstudio.LMStudioWebsocketError() | TimeoutError():
            return unavailable(f"The connection to LM Studio at {address} failed or was cut.")
        case _:
            return unavailable("LM Studio sent something that this version does not understand.")


def _token_message(token: str) -> str:
    if token and token == config().lmstudio_api_token:
        return "LM Studio refused the API token: check CODEINFO_LMSTUDIO_API_TOKEN."
    if token:
        return "LM Studio refused the API token: correct it on the LM Studio page."
    return (
        "LM Studio asks for an API token: make one in its server settings and enter it on the "
        "LM Studio page, or turn off “Require Authentication” there."
    )


def _server_message(error: lmstudio.LMStudioServerError, token: str) -> str:
    """Return the server's message: shortened, on one line, and without the token."""
    details = error.server_error
    parts = [details.title, details.cause, details.suggestion] if details else [str(error)]
    text = " ".join(" ".join(part for part in parts if part).split()) or "it gave no reason"
    if token:
        for secret in (token, *token.removeprefix("sk-lm-").split(":")):
            text = text.replace(secret, "…")
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"
