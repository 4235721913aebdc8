"""Trusted reverse proxies, and the client address that they report."""

from collections.abc import Iterable, Iterator
from typing import Any

from apps.core.config import config
from apps.core.http.ports import Application
from apps.core.values.addresses import IPAddress, read_ip

FORWARDED_FOR = b"x-forwarded-for"

Headers = list[tuple[bytes, bytes]]


class TrustedProxies:
    """Sets the client address of requests through a proxy of CODEINFO_TRUSTED_PROXIES.

    The client is the last address in X-Forwarded-For that is not a trusted proxy; the client itself
    may have written those before it. From other peers, the header of CODEINFO_SECURE_PROXY_HEADER
    is removed, as they could claim HTTPS with it. `root_path`, which daphne reads from a header of
    any client, is always removed: access control and routing must see the same path.
    """

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] in ("http", "websocket"):
            scope = _believed({**scope, "root_path": ""})
        await self.app(scope, receive, send)


def _believed(scope: dict[str, Any]) -> dict[str, Any]:
    address, _ = scope.get("client") or ("", 0)
    if not is_trusted(_parsed(address)):
        secure = config().secure_proxy_header.lower().encode()
        if not secure:
            return scope
        return {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != secure]}
    client = client_address(address, _forwarded(scope["headers"]))
    return {**scope, "client": (client, 0)}


def client_address(peer: str, forwarded: Iterable[str]) -> str:
    """Return the address of the client behind `peer`, a trusted proxy.

    forwarded: the addresses of X-Forwarded-For, in order. The search, from the last one, ends at an
        address that cannot be parsed.
    """
    client = peer
    for text in reversed(list(forwarded)):
        address = _parsed(text)
        if address is None:
            break
        client = str(address)
        if not is_trusted(address):
            break
    return client


def is_trusted(address: IPAddress | None) -> bool:
    """Return True if an address belongs to a trusted proxy."""
    return address is not None and any(address in network for network in config().trusted_proxies)


def _forwarded(headers: Headers) -> Iterator[str]:
    for name, value in headers:
        if name == FORWARDED_FOR:
            yield from (word.strip() for word in value.decode("latin-1").split(","))


def _parsed(text: str) -> IPAddress | None:
    """Parse an address with or without a port; None if it is not one."""
    host = text.partition("]")[0].lstrip("[") if text.startswith("[") else text
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return read_ip(host)
    except ValueError:
        return None
