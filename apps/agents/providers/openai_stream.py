"""One round over the wire, through the OpenAI SDK: the only module that imports it."""

from collections.abc import AsyncGenerator

import httpx2
import openai

from apps.agents.events import Heartbeat, ModelEvent
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.characters import clean
from apps.agents.providers.openai_frames import Round
from apps.agents.providers.openai_messages import body_of
from apps.agents.providers.openai_server import Server, certificates
from apps.core.errors import Unavailable
from apps.core.replies import UNPACKED, CountedStream, EventCounter, ReplyRefused, counted
from apps.core.types import JSON

Frames = openai.AsyncStream[object]

CONNECT_SECONDS = 10.0
MAX_QUOTED_ERROR = 300
# Servers that answered 400 because they were asked for token counts; not asked again.
_without_usage: set[str] = set()
# What comes of a server that sends something else than events in JSON: also numbers of more digits
# than Python reads, and more levels.
NONSENSE = (ValueError, RecursionError)


class _Stream(CountedStream, httpx2.AsyncByteStream):
    """The SDK's HTTP library is another one than ours."""


async def stream(server: Server, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
    """ModelEvents as they come. Raises Unavailable in the words of `_failure`.

    What has been said before an error is said all the same, and nothing is asked twice: a retry
    would double tokens, so it is for the user to choose.
    """
    round_ = Round()
    failure: Exception | None = None
    async with _client(server) as client:
        try:
            async with await _open(client, server, body_of(request)) as frames:
                async for frame in frames:
                    for event in round_.feed(frame) or (Heartbeat(),):
                        yield event
        except (openai.OpenAIError, ReplyRefused, *NONSENSE) as error:
            failure = error
        for event in round_.end():
            yield event
    # After its finish reason a round is whole, whatever becomes of the connection.
    if failure and not round_.finish_reason:
        raise _failure(failure, server, request.model) from failure
    if round_.wrong:
        raise Unavailable(round_.wrong, code="PROVIDER_ERROR")


def _client(server: Server) -> openai.AsyncOpenAI:
    """A client of its own for each round, so that closing it stops the generation.

    Never follows a redirect, which would carry the key elsewhere. Silence is timed by the loop.
    """
    # aiohttp's parser is in C: a token costs half of what it does with the SDK's default.
    http = openai.DefaultAioHttpClient(
        verify=certificates(),
        follow_redirects=False,
        auth=server.basic,
        event_hooks={"response": [counted(lambda response: EventCounter(), _Stream)]},
    )
    return openai.AsyncOpenAI(
        base_url=server.bare_url,
        api_key=server.api_key or "none",
        http_client=http,
        default_headers=UNPACKED,
        max_retries=0,
        timeout=openai.Timeout(None, connect=CONNECT_SECONDS),
    )


async def _open(client: openai.AsyncOpenAI, server: Server, body: JSON) -> Frames:
    """Ask; once more without token counts where the server does not know how to give them."""
    if server.base_url in _without_usage:
        del body["stream_options"]
    try:
        return await _post(client, body)
    except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
        if "stream_options" not in body or "stream_options" not in str(error):
            raise
    _without_usage.add(server.base_url)
    del body["stream_options"]
    return await _post(client, body)


async def _post(client: openai.AsyncOpenAI, body: JSON) -> Frames:
    # Frames as they are: the SDK's typed chunks cost ten times as much and lack the reasoning.
    return await client.post(
        "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=Frames
    )


def _failure(error: Exception, server: Server, model: str) -> Unavailable:
    """What went wrong in a sentence for a person, and whether asking again may help."""
    match error:
        case ReplyRefused():
            return _error(f"The server {error}.", retryable=True)
        case openai.APITimeoutError():
            return _error(f"{server.origin} cannot be reached.", retryable=True)
        case openai.APIStatusError(status_code=status):
            return _refused(status, error, server, model)
        case openai.APIConnectionError():
            return _error(f"The connection to {server.origin} failed or was cut.", retryable=True)
        case openai.APIError():
            return _error(f"The server failed: {_quoted(error, server)}", retryable=True)
        case _:
            return _error("The server sent something that is not an event.", retryable=True)


def _refused(status: int, error: openai.APIStatusError, server: Server, model: str) -> Unavailable:
    said = _quoted(error, server)
    match status:
        case 401 | 403 if server.api_key:
            return _error("The server refused the key: check CODEINFO_OPENAI_API_KEY.")
        case 401 | 403:
            return _error("The server asks for a key: set CODEINFO_OPENAI_API_KEY.")
        case 404:
            return _error(f"The server has no model {model!r}, or the address is wrong: {said}")
        case 429 if error.code == "insufficient_quota":
            return _error("The account behind the key has no quota left.")
        case 429:
            return _error(f"The server takes no more requests now: {said}", retryable=True)
        case _ if status >= 500:
            return _error(f"The server failed ({status}): {said}", retryable=True)
        case _:
            return _error(f"The server refused the request ({status}): {said}")


def _error(message: str, *, retryable: bool = False) -> Unavailable:
    return Unavailable(message, code="PROVIDER_ERROR", retryable=retryable)


def _quoted(error: openai.APIError, server: Server) -> str:
    """The server's own words: short, on one line, and without the key should it repeat it."""
    body = error.body if isinstance(error.body, dict) else {}
    words = body.get("message")
    text = " ".join(clean(words if isinstance(words, str) else error.message).split())
    if server.api_key:
        text = text.replace(server.api_key, "…")
    return text if len(text) <= MAX_QUOTED_ERROR else f"{text[:MAX_QUOTED_ERROR]}…"
