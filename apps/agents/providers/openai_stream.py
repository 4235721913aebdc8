"""Stream one round of Chat Completions."""

import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from typing import Any

import httpx

from apps.agents.events import Heartbeat, ModelEvent, TextDelta, ToolCallRequested
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.characters import clean
from apps.agents.providers.openai_frames import CompletionDecoder
from apps.agents.providers.openai_requests import CONTEXT_CUT, Attempts, ServerError
from apps.agents.providers.openai_server import client, key_problem
from apps.agents.providers.printed_calls import PrintedCalls
from apps.core.errors import Unavailable
from apps.core.http.event_stream import EventReader
from apps.core.http.limits import label
from apps.core.http.replies import EventCounter, ReplyRefused
from apps.core.types import JSON
from apps.core.values.addresses import AddressRefused
from apps.servers.types import Server

Events = AsyncGenerator[ModelEvent, None]

# No limit of silence, which the loop has.
TIMEOUT = httpx.Timeout(None, connect=10.0)
MAX_QUOTED_ERROR = 300
# Raised for frames that are not JSON, or have too long numbers or too many levels for Python.
DECODE_ERRORS = (ValueError, RecursionError)
END = "[DONE]"
_TAG = re.compile(r"<[^<>]{0,1000}>")
NO_WORDS = "it does not say why."


async def stream(server: Server, request: ModelRequest) -> Events:
    """Yield ModelEvents as they arrive. Raises Unavailable (see `_failure`).

    Yields all text received before an error. Asks again only if the server has refused a part of
    the request (`Attempts`): another retry would cost tokens twice, so the user decides.
    """
    attempts = Attempts(server, request)
    # One client for a round: closing it stops the generation.
    async with client(
        server, counter=lambda response: EventCounter().feed, timeout=TIMEOUT
    ) as http:
        while (search := attempts.search()) is None:
            one = _Round(server, request)
            async with aclosing(one.events(http, attempts.body())) as events:
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

    async def events(self, http: httpx.AsyncClient, body: JSON) -> Events:
        try:
            async with (
                http.stream("POST", "/chat/completions", json=body) as response,
                aclosing(_frames(response)) as frames,
            ):
                self._foreign = _foreign_kind(response)
                async for frame in frames:
                    self._foreign = ""
                    if frame == END:
                        self._decoder.done()
                        return
                    for event in self._decoder.feed(frame) or (Heartbeat(),):
                        self._note(event)
                        yield event
        except (ServerError, ReplyRefused, httpx.HTTPError, OSError, *DECODE_ERRORS) as error:
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


async def _frames(response: httpx.Response) -> AsyncGenerator[Any, None]:
    """Yield the JSON values of the stream, and END if the server says so. Raises ServerError."""
    if not response.is_success:
        wait = response.headers.get("retry-after", "")
        raise ServerError(_read_refusal(await response.aread()), response.status_code, wait)
    events = EventReader()
    whole = b""  # of a reply that is no stream
    async for chunk in response.aiter_raw():
        if whole or (events.is_new and chunk.lstrip()[:1] == b"{"):
            whole += chunk
            continue
        for data in events.feed(chunk):
            for frame in _values(data):
                yield frame
    if whole:
        for frame in _values(whole.decode()):
            if isinstance(frame, dict) and "choices" not in frame:
                raise ServerError(frame)
            yield frame
    with suppress(*DECODE_ERRORS):  # what was cut is no frame
        for frame in [frame for data in events.feed(b"\n\n") for frame in _values(data)]:
            yield frame


def _values(data: str) -> Iterator[Any]:
    """Yield the values of the data of an event: one, or one in each line. Raises ServerError."""
    try:
        values = [json.loads(data)] if data.strip() not in ("", END) else []
        is_end = data.startswith(END)
    except DECODE_ERRORS:
        lines = [line for line in data.splitlines() if line.strip()]
        is_end = lines[-1].startswith(END)
        values = [json.loads(line) for line in lines[: len(lines) - is_end]]
    for value in values:
        if isinstance(value, dict):
            choices = value.get("choices")
            choice = choices[0] if isinstance(choices, list) and choices else None
            failed = choice.get("error") if isinstance(choice, dict) else None
            # The second is vLLM's: `{"object": "error", "message": …}`.
            if value.get("error") or value.get("object") == "error" or failed:
                raise ServerError(failed or value)
        yield value
    if is_end:
        yield END


def _read_refusal(body: bytes) -> Any:
    text = body.decode("utf-8", "replace").strip()
    try:
        return json.loads(text)
    except DECODE_ERRORS:
        return text


def _foreign_kind(response: httpx.Response) -> str:
    """The content type of a reply that is not an event stream, such as a login page; else "".

    Some servers send events under another type, so the reply is read before it is refused.
    """
    kind = response.headers.get("content-type", "").lower()
    return "" if kind in ("", "text/event-stream") else label(kind)


def _failure(error: Exception, server: Server, model: str) -> Unavailable:
    """Translate an error to a sentence for the user, with `retryable` set."""
    match error:
        case ReplyRefused():
            return _error(f"The server {error}.", retryable=True)
        case ServerError(status=None):
            return _error(f"The server failed: {_quoted(error, server)}", retryable=True)
        case ServerError():
            return _status_error(error, server, model)
        case AddressRefused():
            return _error(f"The address {server.origin} {error}.")
        case httpx.TimeoutException():
            return _error(f"{server.origin} cannot be reached.", retryable=True)
        case httpx.HTTPError() | OSError():
            return _error(f"The connection to {server.origin} failed or was cut.", retryable=True)
        case _:
            return _error("The server sent something that is not an event.", retryable=True)


def _status_error(error: ServerError, server: Server, model: str) -> Unavailable:
    quote = _quoted(error, server)
    match error.status:
        case 401 | 403:
            return _error(f"The server {key_problem(server)}")
        case 404:
            return _error(f"The server has no model {model!r}, or the address is wrong: {quote}")
        case 429 if error.code == "insufficient_quota":
            return _error("The account behind the key has no quota left.")
        case 429:
            return _error(f"The server takes no more requests now: {quote}", retryable=True)
        case int(status) if status >= 500:
            return _error(f"The server failed ({status}): {quote}", retryable=True)
        case status:
            return _error(f"The server refused the request ({status}): {quote}")


def _error(message: str, *, retryable: bool = False) -> Unavailable:
    return Unavailable(message, code="PROVIDER_ERROR", retryable=retryable)


def _quoted(error: ServerError, server: Server) -> str:
    """Return the server's message: shortened, on one line, and without the key."""
    words = error.words
    if words.startswith("<"):  # the page of a proxy
        words = _TAG.sub(" ", words)
    if error.retry_after.isascii() and error.retry_after.isdecimal():
        words = f"{words or NO_WORDS} (again in {error.retry_after} seconds)"
    text = " ".join(clean(words or NO_WORDS).split())
    if server.key:
        text = text.replace(server.key, "…")
    return text if len(text) <= MAX_QUOTED_ERROR else f"{text[:MAX_QUOTED_ERROR]}…"
