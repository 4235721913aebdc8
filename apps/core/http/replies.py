"""Limits the replies of other HTTP servers: never decompressed, never longer than a limit.

A compressed reply may expand to a thousand times its size, so compression is not requested and not
accepted. Bytes are counted before anything collects them. The charset of a reply is ignored, as
some codecs decompress too, or are slow.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, cast

from apps.core.http import limits
from apps.core.system.unused import without
from apps.core.values.addresses import connect_to_checked

# The command `httpx`, which imports rich and click.
with without("httpx._main"):
    import httpx

# The body of an error response is read until it has so many bytes.
MAX_REFUSAL = 64_000
# Limit of a list. Parsing JSON takes about twenty times its size in memory.
MAX_LIST = 8_000_000
# Key of a request's extensions: a lower limit for its reply, in bytes.
MAX_BYTES = "max_bytes"
BAD_PROXY = "cannot be asked: ALL_PROXY, HTTP_PROXY or HTTPS_PROXY is not the URL of an HTTP proxy"
UNPACKED = {"Accept-Encoding": "identity"}
# The blank line that ends an event, whichever way lines end.
_END_OF_EVENT = re.compile(rb"\n\r?\n|\r\r")


class ReplyRefused(Exception):
    """A reply is too long, or compressed, or cannot be asked for. `str()` completes a sentence that
    starts with the server's name."""


# Called with each chunk of a reply: returns the part to pass on; less than the chunk ends the
# reading. Raises ReplyRefused above a limit.
Feed = Callable[[bytes], bytes]


class ReplyCounter:
    """Counts the bytes of a whole reply."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def feed(self, chunk: bytes) -> bytes:
        self._left -= len(chunk)
        if self._left < 0:
            raise ReplyRefused(f"sent a reply of more than {self._most} bytes")
        return chunk


class EventCounter:
    """Counts the bytes of each server-sent event, and of the whole reply."""

    def __init__(self) -> None:
        self._reply = ReplyCounter(limits.MAX_REPLY_BYTES)
        self._most = limits.MAX_FRAME_BYTES
        self._size = 0
        # The last bytes, which may be the start of a blank line.
        self._tail = b""

    def feed(self, chunk: bytes) -> bytes:
        events = _END_OF_EVENT.split(self._tail + chunk)
        sizes = [len(event) for event in events]
        sizes[0] += self._size - len(self._tail)
        if max(sizes) > self._most:
            raise ReplyRefused(f"sent an event of more than {self._most} bytes")
        self._size, self._tail = sizes[-1], events[-1][-2:]
        return self._reply.feed(chunk)


class RefusalCounter:
    """Reads only the start of the body of an error response."""

    def __init__(self) -> None:
        self._left = MAX_REFUSAL

    def feed(self, chunk: bytes) -> bytes:
        if len(chunk) < self._left:
            self._left -= len(chunk)
            return chunk
        # Less than the chunk also if it ends at the limit: nothing may follow for a long time.
        return chunk[: self._left - 1]


def _refuse_compressed(chunk: bytes) -> bytes:
    """Refuse a reply that is compressed although the request did not accept that."""
    raise ReplyRefused("sent a compressed reply, which is not read")


CounterOf = Callable[[httpx.Response], Feed]


class _CountedStream(httpx.AsyncByteStream):
    """The body of a reply, counted while it is read."""

    def __init__(self, body: AsyncIterable[bytes], feed: Feed) -> None:
        self._body, self._feed = body, feed

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async for chunk in self._body:
            if passed := self._feed(chunk):
                yield passed
            if len(passed) < len(chunk):
                return

    async def aclose(self) -> None:
        await self._body.aclose()  # type: ignore[attr-defined]


def _counted(counter: CounterOf) -> Callable[[httpx.Response], Awaitable[None]]:
    """Return a response hook (`event_hooks`) that counts each reply while it is read."""

    async def hook(response: httpx.Response) -> None:
        kind = response.headers.get("content-type")
        if kind is not None:
            response.headers["content-type"] = kind.partition(";")[0]
        if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            feed: Feed = _refuse_compressed
        elif response.status_code >= 300:
            feed = RefusalCounter().feed
        else:
            feed = counter(response)
        body = cast("httpx.AsyncByteStream", response.stream)
        response.stream = _CountedStream(body, feed)

    return hook


def _of_request(response: httpx.Response) -> Feed:
    most = limits.MAX_REPLY_BYTES
    return ReplyCounter(min(most, response.request.extensions.get(MAX_BYTES, most))).feed


def client(
    counter: CounterOf = _of_request, *, checked: bool = False, **options: Any
) -> httpx.AsyncClient:
    """Return an HTTP client for other servers. Its calls also raise ReplyRefused.

    checked: resolve and check the server's name for each connection, without a proxy, which would
        resolve it again

    A reply is limited to limits.MAX_REPLY_BYTES; `extensions={MAX_BYTES: n}` of a request lowers
    that, and `counter` may limit its parts. Redirects are not followed, and cookies are not stored.
    If the environment names a proxy that httpx cannot use, such as one of SOCKS, each call is
    refused.
    """
    resolving = [connect_to_checked] if checked else []
    hooks = {"request": resolving, "response": [_counted(counter)]}
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    headers = {**UNPACKED, **options.pop("headers", {})}
    options |= {"headers": headers, "event_hooks": hooks, "cookies": cookies}
    options.setdefault("trust_env", not checked)
    try:
        return httpx.AsyncClient(**options)
    except (ImportError, ValueError, httpx.InvalidURL):
        return httpx.AsyncClient(**options | {"trust_env": False, "transport": _NoTransport()})


class _NoTransport(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise ReplyRefused(BAD_PROXY)
