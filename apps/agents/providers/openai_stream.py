"""Stream one round through the OpenAI SDK. No other module imports the SDK."""

from collections.abc import AsyncGenerator

import httpx2
import openai

from apps.agents.events import Heartbeat, ModelEvent
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.characters import clean
from apps.agents.providers.openai_frames import CompletionDecoder
from apps.agents.providers.openai_messages import body_of
from apps.agents.providers.openai_server import key_problem, ssl_context
from apps.core.errors import Unavailable
from apps.core.http.limits import label
from apps.core.http.replies import UNPACKED, CountedStream, EventCounter, ReplyRefused, counted
from apps.core.types import JSON
from apps.servers.types import Server

Frames = openai.AsyncStream[object]

CONNECT_SECONDS = 10.0
MAX_QUOTED_ERROR = 300
# Servers that answered 400 or 422 to `stream_options`; later requests omit it.
_without_usage: set[str] = set()
# Raised for frames that are not JSON, or have too long numbers or too many levels for Python.
DECODE_ERRORS = (ValueError, RecursionError)


class _Stream(CountedStream, httpx2.AsyncByteStream):
    """A counted stream for httpx2, which the SDK uses instead of httpx."""


async def stream(server: Server, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """Yield ModelEvents as they arrive. Raises Unavailable (see `_failure`).

    Yields all text received before an error. Never retries: a retry would cost tokens twice, so the
    user decides.
    """
    decoder = CompletionDecoder()
    failure: Exception | None = None
    foreign = ""
    async with _client(server) as client:
        try:
            async with await _open(client, server, body_of(request)) as frames:
                foreign = _foreign_kind(frames)
                async for frame in frames:
                    foreign = ""
                    for event in decoder.feed(frame) or (Heartbeat(),):
                        yield event
        except (openai.OpenAIError, ReplyRefused, *DECODE_ERRORS) as error:
            failure = error
        for event in decoder.end():
            yield event
    # A round is complete once it has a finish reason, even if the connection then fails.
    if failure and not decoder.finish_reason:
        raise _failure(failure, server, request.model) from failure
    if foreign:
        raise _error(
            f"{server.origin} answered with {foreign}, not an event stream: is the address right, "
            "does it end in /v1?"
        )
    if decoder.problem:
        raise Unavailable(decoder.problem, code="PROVIDER_ERROR")


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


async def _open(client: openai.AsyncOpenAI, server: Server, body: JSON) -> Frames:
    """Send the request; repeat it without `stream_options` if the server rejects that."""
    if server.address in _without_usage:
        del body["stream_options"]
    try:
        return await _post(client, body)
    except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
        if "stream_options" not in body or "stream_options" not in str(error):
            raise
    _without_usage.add(server.address)
    del body["stream_options"]
    return await _post(client, body)


async def _post(client: openai.AsyncOpenAI, body: JSON) -> Frames:
    # Raw frames: the SDK's typed chunks cost ten times as much and lack the reasoning fields.
    return await client.post(
        "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=Frames
    )


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
    body = error.body if isinstance(error.body, dict) else {}
    words = body.get("message")
    text = " ".join(clean(words if isinstance(words, str) else error.message).split())
    if server.key:
        text = text.replace(server.key, "…")
    return text if len(text) <= MAX_QUOTED_ERROR else f"{text[:MAX_QUOTED_ERROR]}…"
