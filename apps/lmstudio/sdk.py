"""LM Studio's SDK as this product uses it: one short-lived client for each listing or round.

A client never reconnects and belongs to one event loop, and closing its socket is what stops a
generation for good. Four things here are not public in the SDK: a client of one namespace (its
own opens all five, one after the other), one that does not greet the server again, how it opens a
websocket, and a round's events, among them tool calls (its own loop would run the tools, out of
sight until all are done). So its version is pinned (requirements/base.in), and tests/lmstudio tries
them on a real socket.
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

from apps.core.addresses import Address
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.lmstudio.errors import unavailable
from apps.lmstudio.failures import failure
from apps.lmstudio.types import (
    JSON,
    ModelLoading,
    PredictionEnd,
    PredictionEvent,
    PredictionRequest,
    TextFragment,
    ToolCallReceived,
)
from apps.lmstudio.websocket import Bounds, bounded, websocket

Namespace = Literal["llm", "system"]
CONNECT_SECONDS = 10.0
CANCEL_SECONDS = 1.0
# What the SDK raises where a server's message has not the shape that it should.
NONSENSE = (ValueError, TypeError, KeyError, AttributeError)

# A newer server may send more than the SDK knows; the warning would quote it. So would the log
# lines of the SDK, whose loggers have the names of its classes. What matters of both is raised.
warnings.simplefilter("ignore", lmstudio.LMStudioUnknownMessageWarning)
for _name in (
    *("AsyncWebsocketHandler", "_AsyncLMStudioWebsocket", "AsyncRemoteCall", "AsyncLLM"),
    *("ChannelHandler", "RemoteCallHandler", "GetOrLoadEndpoint", "ChatResponseEndpoint"),
):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


_ws_impl.aconnect_ws = websocket  # type: ignore[assignment, attr-defined]


class Client(lmstudio.AsyncClient):
    """A client of one namespace of a server that has greeted us."""

    def __init__(self, host: str, namespace: Namespace, token: str) -> None:
        # An empty token keeps the SDK from looking for one in the environment.
        super().__init__(host, token)
        self._ALL_SESSIONS = tuple(
            session
            for session in lmstudio.AsyncClient._ALL_SESSIONS
            if namespace == session.API_NAMESPACE
        )

    async def _ensure_api_host_is_valid(self) -> None:
        """Nothing: `server.reach` has asked."""


@contextmanager
def told(address: Address, token: str) -> Iterator[None]:
    """What the SDK raises in the block, as Unavailable in the words of `failures`."""
    try:
        yield
    except (lmstudio.LMStudioError, *NONSENSE) as error:
        raise failure(error, address, token) from error


@asynccontextmanager
async def connected(
    address: Address, host: str, namespace: Namespace, token: str, bounds: Bounds
) -> AsyncIterator[Client]:
    """A client until the block ends; what is generated for it then stops. Raises Unavailable."""
    client = Client(host, namespace, token)
    try:
        with told(address, token):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    with bounded(bounds):
                        await client.__aenter__()
            except TimeoutError:
                raise lmstudio.LMStudioWebsocketError("no handshake") from None
        yield client
    except Unavailable as error:
        if bounds.refused:
            raise unavailable(f"LM Studio sent {bounds.refused}.") from error
        raise
    finally:
        await client.aclose()


async def downloaded_models(address: Address, host: str, token: str) -> Any:
    """The answer as it came: the SDK's own reading gives up at the first model it does not know."""
    async with connected(address, host, "system", token, Bounds.of_list()) as client:
        with told(address, token):
            return await client.system.remote_call("listDownloadedModels")


async def predict(
    address: Address, host: str, model: str, compose: Callable[[int | None], PredictionRequest]
) -> AsyncGenerator[PredictionEvent, None]:
    """One round of a model, loaded first if need be; ends with Ended. Raises Unavailable.

    `compose` makes the question for a model whose context has so many tokens (None: unknown).
    Closing the generator cancels what is generated, and closes the connection.
    """
    token = config().lmstudio_api_token
    async with connected(address, host, "llm", token, Bounds.of_answer()) as client:
        loading = _Loading(client, model)
        async with aclosing(loading.signs()) as signs:
            async for sign in signs:
                yield sign
        with told(address, token):
            handle = await loading.done
            context = await handle.get_context_length()
        # What the SDK says against the question is a bug of ours, and propagates.
        prediction = await _ask(handle, compose(context if context > 0 else None))
        async with aclosing(_events(address, token, prediction)) as events:
            async for event in events:
                yield _heard(event)
        with told(address, token):
            stats = prediction.result().stats
        yield PredictionEnd(
            stats.stop_reason,
            stats.prompt_tokens_count,
            stats.predicted_tokens_count,
            stats.total_tokens_count,
        )


class _Loading:
    """A model on its way into memory, which may take minutes."""

    def __init__(self, client: Client, model: str) -> None:
        self._progress: asyncio.Queue[ModelLoading | None] = asyncio.Queue()
        self.done = asyncio.create_task(client.llm.model(model, on_load_progress=self._loaded))
        self.done.add_done_callback(lambda _: self._progress.put_nowait(None))

    def _loaded(self, progress: float) -> None:
        # One that was there all along is told as loaded too, which is no sign of life.
        if progress < 1:
            self._progress.put_nowait(ModelLoading())

    async def signs(self) -> AsyncGenerator[ModelLoading, None]:
        """A sign of life for each step of its progress, until it is there or has failed."""
        try:
            while sign := await self._progress.get():
                yield sign
        finally:
            self.done.cancel()


async def _ask(handle: lmstudio.AsyncLLM, question: PredictionRequest) -> AsyncPredictionStream:
    # Past its context a model would silently lose the beginning: the instructions.
    config: JSON = {"contextOverflowPolicy": "stopAtLimit"}
    if question.tools:
        config["rawTools"] = {"type": "toolArray", "tools": question.tools}
    return await handle.respond_stream(
        _copied({"messages": question.messages}),
        config=_copied(config),
        # Progress is told only to those who listen.
        on_prompt_processing_progress=lambda progress: None,
    )


def _copied(value: JSON) -> Any:
    """Every part of it an object of its own: the SDK takes one that occurs twice for a cycle."""
    return json.loads(json.dumps(value))


async def _events(
    address: Address, token: str, prediction: AsyncPredictionStream
) -> AsyncGenerator[PredictionRxEvent, None]:
    with told(address, token):
        await prediction.start()
    # Kept, for the stream lets go of it before it could be told to stop.
    channel = prediction._channel
    assert channel is not None
    stream = cast(AsyncGenerator[PredictionRxEvent, None], prediction._iter_events())
    async with aclosing(stream):
        try:
            while True:
                with told(address, token):
                    event = await anext(stream, None)
                if event is None:
                    return
                yield event
        except (GeneratorExit, asyncio.CancelledError):
            # Nobody listens any more. The socket is closed in a moment, too: either stops it.
            with suppress(lmstudio.LMStudioError, TimeoutError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    await channel.cancel()
            raise


def _heard(event: PredictionRxEvent) -> PredictionEvent:
    match event:
        case PredictionFragmentEvent(fragment):
            return TextFragment(fragment.content, fragment.reasoning_type)
        case PredictionToolCallEvent(request):
            return ToolCallReceived(request.id, request.name, request.arguments)
        case _:
            return ModelLoading()
