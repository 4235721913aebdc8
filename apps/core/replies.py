"""Replies of HTTP servers that are not ours: never unpacked, never longer than a limit.

A limit on the bytes that arrive says nothing about a compressed reply, which may unpack to a
thousand times its size, so none is asked for and none is read. Bytes are counted before anything
collects them. The charset that a server names is not used: some codecs unpack or take long, too.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Protocol

import httpx

from apps.core.config import config
from apps.core.limits import named

# What is read of the body of a refusal; sentences are short.
MAX_REFUSAL = 64_000
# A reply of JSON takes about twenty times its bytes while it is read, so a list has less than the
# vectors of a batch.
MAX_LIST = 8_000_000
# Of a request: the bytes that its reply may have, where it is fewer than the setting says.
MAX_BYTES = "max_bytes"
UNPACKED = {"Accept-Encoding": "identity"}
# The blank line that ends an event, whichever way lines end.
_END_OF_EVENT = re.compile(rb"\n\r?\n|\r\r")


class ReplyRefused(Exception):
    """A reply is too long, or compressed. `str` says it in a clause after the server's name."""


class Counter(Protocol):
    """Counts what arrives."""

    @property
    def full(self) -> bool:
        """Whether nothing more is to be read."""

    def feed(self, chunk: bytes) -> bytes:
        """What of the chunk is passed on. Raises ReplyRefused past a limit."""


class ReplyCounter:
    """The bytes of a whole reply."""

    full = False

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def feed(self, chunk: bytes) -> bytes:
        self._left -= len(chunk)
        if self._left < 0:
            whole = self._most >= config().max_reply_bytes
            limit = named("max_reply_bytes") if whole else str(self._most)
            raise ReplyRefused(f"sent a reply of more than {limit} bytes")
        return chunk


class EventCounter:
    """The bytes of each server-sent event, and those of all of them."""

    full = False

    def __init__(self) -> None:
        self._reply = ReplyCounter(config().max_reply_bytes)
        self._most = config().max_frame_bytes
        self._size = 0
        # The end of what came, where a blank line may have begun.
        self._tail = b""

    def feed(self, chunk: bytes) -> bytes:
        events = _END_OF_EVENT.split(self._tail + chunk)
        sizes = [len(event) for event in events]
        sizes[0] += self._size - len(self._tail)
        if max(sizes) > self._most:
            raise ReplyRefused(f"sent an event of more than {named('max_frame_bytes')} bytes")
        self._size, self._tail = sizes[-1], events[-1][-2:]
        return self._reply.feed(chunk)


class RefusalCounter:
    """The body of a refusal: its beginning is enough, and its status still counts."""

    def __init__(self) -> None:
        self._left = MAX_REFUSAL

    @property
    def full(self) -> bool:
        return self._left <= 0

    def feed(self, chunk: bytes) -> bytes:
        passed = chunk[: max(self._left, 0)]
        self._left -= len(chunk)
        return passed


class Compressed:
    """A reply that is compressed although it was asked not to be."""

    full = False

    def feed(self, chunk: bytes) -> bytes:
        raise ReplyRefused("sent a compressed reply, which is not read")


class CountedStream:
    """The body of a reply, counted; to be mixed into the stream class of an HTTP library."""

    def __init__(self, body: AsyncIterable[bytes], counter: Counter) -> None:
        self._body, self._counter = body, counter

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async for chunk in self._body:
            if passed := self._counter.feed(chunk):
                yield passed
            if self._counter.full:
                return

    async def aclose(self) -> None:
        await self._body.aclose()  # type: ignore[attr-defined]


class _HttpxStream(CountedStream, httpx.AsyncByteStream):
    pass


def counted(
    counter: Callable[[Any], Counter], stream: type[CountedStream]
) -> Callable[[Any], Awaitable[None]]:
    """A hook for the responses of a client (`event_hooks`) that counts each before it is read."""

    async def hook(response: Any) -> None:
        kind = response.headers.get("content-type")
        if kind is not None:
            response.headers["content-type"] = kind.partition(";")[0]
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            chosen: Counter = Compressed()
        elif response.status_code >= 300:
            chosen = RefusalCounter()
        else:
            chosen = counter(response)
        response.stream = stream(response.stream, chosen)

    return hook


def _of_request(response: httpx.Response) -> Counter:
    most = config().max_reply_bytes
    return ReplyCounter(min(most, response.request.extensions.get(MAX_BYTES, most)))


def client(**options: Any) -> httpx.AsyncClient:
    """An HTTP client for servers that are not ours. Its calls raise ReplyRefused, too.

    `extensions={MAX_BYTES: n}` of a request says how long its reply may be; no longer than
    CODEINFO_MAX_REPLY_BYTES in any case. Redirects are not followed, and no cookie is kept.
    """
    hooks = {"response": [counted(_of_request, _HttpxStream)]}
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    headers = {**UNPACKED, **options.pop("headers", {})}
    return httpx.AsyncClient(headers=headers, event_hooks=hooks, cookies=cookies, **options)
