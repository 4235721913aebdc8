"""Stream one round through the OpenAI SDK. No other module imports the SDK."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2
import openai

from apps.agents.events import Heartbeat, ModelEvent, TextDelta, ToolCallRequested
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.characters import clean
from apps.agents.providers.openai_frames import CompletionDecoder
from apps.agents.providers.openai_requests import CONTEXT_CUT, Attempts
from apps.agents.providers.openai_server import key_problem, ssl_context
from apps.agents.providers.printed_calls import PrintedCalls
from apps.core.errors import Unavailable
from apps.core.http.limits import label
from apps.core.http.replies import UNPACKED, CountedStream, EventCounter, ReplyRefused, counted
from apps.core.types import JSON
from apps.servers.types import Server

Frames = openai.AsyncStream[object]
Events = AsyncGenerator[ModelEvent, None]

CONNECT_SECONDS = 10.0
MAX_QUOTED_ERROR = 300
# Raised for frames that are not JSON, or have too long numbers or too many levels for Python.
DECODE_ERRORS = (ValueError, RecursionError)


class _Stream(CountedStream, httpx2.AsyncByteStream):
    """A counted stream for httpx2, which the SDK uses instead of httpx."""


async def stream(server: Server, request: ModelRequest) -> Events:
    """Yield ModelEvents as they arrive. Raises Unavailable (see `_failure`).

    Yields all text received before an error. Asks again only if the server has refused a part of
    the request (`Attempts`): another retry would cost tokens twice, so the user decides.
    """
    attempts = Attempts(server, request)
    async with _client(server) as client:
        while (search := attempts.search()) is None:
            one = _Round(server, request)
            async with aclosing(one.events(client, attempts.body())) as events:
                async for event in events:
                    yield event
            if one.has_begun or one.failure is None or not attempts.adapt(one.failure):
                break
    if search is not None:
        yield ToolCallRequested(search)
        return
    for event in one.end():
        yield event
    one.check()
    if attempts.is_cut and one.has_text and not one.has_calls:
        yield TextDelta(f"\n\n{CONTEXT_CUT}")


class _Round:
    """One request and its stream.

    failure: what ended the stream early.
    has_begun, has_text: something of the answer has come, some of its text.
    has_calls: the answer calls tools.
    """

    def __init__(self, server: Server, request: ModelRequest) -> None:
        self.failure: Exception | None = None
        self.has_begun = self.has_text = self.has_calls = False
        self._server, self._model = server, request.model
        self._decoder = CompletionDecoder(PrintedCalls.of(request))
        self._foreign = ""

    async def events(self, client: openai.AsyncOpenAI, body: JSON) -> Events:
        try:
            async with await _post(client, body) as frames:
                self._foreign = _foreign_kind(frames)
                async for frame in frames:
                    self._foreign = ""
                    _raise_for(frame, frames.response.request)
                    for event in self._decoder.feed(frame) or (Heartbeat(),):
                        self._note(event)
                        yield event
        except (openai.OpenAIError, ReplyRefused, *DECODE_ERRORS) as error:
            self.failure = error

    def end(self) -> list[ModelEvent]:
        """Return what the decoder still holds."""
        events = self._decoder.end()
        for event in events:
            self._note(event)
        return events

    def _note(self, event: ModelEvent) -> None:
        self.has_begun |= not isinstance(event, Heartbeat)
        self.has_text |= isinstance(event, TextDelta)
        self.has_calls |= isinstance(event, ToolCallRequested)

    def check(self) -> None:
        """Raise Unavailable if the round has failed."""
        # A round is complete once it has a finish reason, even if the connection then fails.
        if self.failure and not self._decoder.finish_reason:
            raise _failure(self.failure, self._server, self._model) from self.failure
        if self._foreign:
            raise _error(
                f"{self._server.origin} answered with {self._foreign}, not an event stream: is the "
                "address right, does it end in /v1?"
            )
        if self._decoder.problem:
            raise Unavailable(self._decoder.problem, code="PROVIDER_ERROR")


def _client(server: Server) -> openai.AsyncOpenAI:
    """Create a client for one round; closing it stops the generation.

    Follows no redirects, which would send the key to another host. Has no read timeout, because the
    loop limits silence.
    """
    # aiohttp's parser is written in C and halves the cost of a token.
    http = openai.DefaultAioHttpClient(
        verify=ssl_context(),
        follow_redirects=False,
        auth=server.basic_auth,
        event_hooks={
            "request": server.request_hooks,
            "response": [counted(lambda response: EventCounter(), _Stream)],
        },
        **server.client_options,
    )
    return openai.AsyncOpenAI(
        base_url=server.bare_url,
        api_key=server.key or "none",
        http_client=http,
        default_headers=UNPACKED,
        max_retries=0,
        timeout=openai.Timeout(None, connect=CONNECT_SECONDS),
    )


async def _post(client: openai.AsyncOpenAI, body: JSON) -> Frames:
    # Raw frames: the SDK's typed chunks cost ten times as much and lack the reasoning fields.
    return await client.post(
        "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=Frames
    )


def _raise_for(frame: object, request: httpx2.Request) -> None:
    """Raise for the error of vLLM, `{"object": "error", "message": …}`; the SDK knows others."""
    if isinstance(frame, dict) and frame.get("object") == "error":
        raise openai.APIError("no message", request, body=frame)


def _foreign_kind(frames: Frames) -> str:
    """The content type of a reply that is not an event stream, such as a login page; else "".

    Some servers send events under another type, so the reply is read before it is refused.
    """
    kind = frames.response.headers.get("content-type", "").lower()
    return "" if kind in ("", "text/event-stream") else label(kind)


def _failure(error: Exception, server: Server, model: str) -> Unavailable:
    """Translate an error of the SDK to a sentence for the user, with `retryable` set."""
    match error:
        case ReplyRefused():
            return _error(f"The server {error}.", retryable=True)
        case openai.APITimeoutError():
            return _error(f"{server.origin} cannot be reached.", retryable=True)
        case openai.APIStatusError(status_code=status):
            return _status_error(status, error, server, model)
        case openai.APIConnectionError():
            return _error(f"The connection to {server.origin} failed or was cut.", retryable=True)
        case openai.APIError():
            return _error(f"The server failed: {_quoted(error, server)}", retryable=True)
        case _:
            return _error("The server sent something that is not an event.", retryable=True)


def _status_error(
    status: int, error: openai.APIStatusError, server: Server, model: str
) -> Unavailable:
    quote = _quoted(error, server)
    match status:
        case 401 | 403:
            return _error(f"The server {key_problem(server)}")
        case 404:
            return _error(f"The server has no model {model!r}, or the address is wrong: {quote}")
        case 429 if error.code == "insufficient_quota":
            return _error("The account behind the key has no quota left.")
        case 429:
            return _error(f"The server takes no more requests now: {quote}", retryable=True)
        case _ if status >= 500:
            return _error(f"The server failed ({status}): {quote}", retryable=True)
        case _:
            return _error(f"The server refused the request ({status}): {quote}")


def _error(message: str, *, retryable: bool = False) -> Unavailable:
    return Unavailable(message, code="PROVIDER_ERROR", retryable=retryable)


def _quoted(error: openai.APIError, server: Server) -> str:
    """Return the server's message: shortened, on one line, and without the key."""
    # Some servers send `{"error": "text"}`.
    words = error.body.get("message") if isinstance(error.body, dict) else error.body
    text = " ".join(clean(words if words and isinstance(words, str) else error.message).split())
    if server.key:
        text = text.replace(server.key, "…")
    return text if len(text) <= MAX_QUOTED_ERROR else f"{text[:MAX_QUOTED_ERROR]}…"
