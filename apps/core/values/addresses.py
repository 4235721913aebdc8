"""Parses server addresses that users enter, and refuses dangerous ones (SSRF).

An address is checked when it is entered, and again with its name resolved each time it is used.
Private networks are allowed, as model servers are there. Link-local and metadata addresses are
refused in every notation: they give out the credentials of a cloud machine.
"""

import asyncio
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

IPAddress = IPv4Address | IPv6Address


class AddressRefused(ValueError):
    """An address that is never connected to. `str()` starts with "must"."""


# Accepted scheme → HTTP scheme. A websocket starts as an HTTP request.
SCHEMES = {"http": "http", "ws": "http", "https": "https", "wss": "https"}
DEFAULT_PORTS = {"http": 80, "https": 443}
# Metadata services that are not link-local: AWS over IPv6, Alibaba, Azure, Oracle.
METADATA = frozenset(
    map(ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)
NAT64 = ip_network("64:ff9b::/96")
NOT_AN_ADDRESS = "must be a URL such as http://127.0.0.1:1234"
REFUSED = "must not lead to a link-local, metadata or multicast address"
RESOLVE_SECONDS = 3.0


@dataclass(frozen=True)
class Address:
    """A server. `str()` returns its canonical form."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Parse an address. Raises ValueError with a message that starts with "must".

        The schemes ws and wss are read as http and https. A path of /v1 is dropped, as users copy
        the base URL of OpenAI clients. Other paths and user names are refused.
        """
        if not text.isprintable() or re.search(r"[\s\\]", text):
            raise ValueError(NOT_AN_ADDRESS)
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ValueError(NOT_AN_ADDRESS) from None
        scheme = SCHEMES.get(parts.scheme)
        if scheme is None or not parts.hostname or port == 0:
            raise ValueError(NOT_AN_ADDRESS)
        if "@" in parts.netloc or "?" in text or "#" in text:
            raise ValueError(NOT_AN_ADDRESS)
        if parts.path.rstrip("/") not in ("", "/v1"):
            raise ValueError(f"{NOT_AN_ADDRESS}, with nothing behind the port")
        return cls(scheme, ascii_host(parts.hostname), port or DEFAULT_PORTS[scheme])

    def __str__(self) -> str:
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{bracketed(self.host)}{port}"

    async def resolve(self) -> IPAddress:
        """Resolve the host. An IPv4 address is preferred, as few model servers listen on IPv6.

        Connect to the result and not to the name, which may resolve to another address later.
        Raises ValueError if any address of the name is refused, and OSError if it has none.
        """
        async with asyncio.timeout(RESOLVE_SECONDS):
            entries = await asyncio.get_running_loop().getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM
            )
        addresses = [ip_address(entry[4][0]) for entry in entries]
        for address in addresses:
            check_address(address)
        return min(addresses, key=lambda address: address.version)


def split_address(text: str) -> tuple[Address, str]:
    """Parse an address that may have a path. Return the server, and the address in canonical form.

    Raises ValueError as `Address.parse`.
    """
    if not text.isprintable() or re.search(r"[\s\\?#]", text):
        raise ValueError(NOT_AN_ADDRESS)
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError(NOT_AN_ADDRESS) from None
    if not re.fullmatch(r"[A-Za-z0-9._~%+/-]*", parts.path):
        raise ValueError(NOT_AN_ADDRESS)
    server = Address.parse(f"{parts.scheme}://{parts.netloc}")
    return server, str(server) + parts.path.rstrip("/")


async def connect_to_checked(request: Any) -> None:
    """A request hook of httpx: resolve the host now, and connect to what was checked.

    TLS still verifies the name. Raises AddressRefused, and OSError as `Address.resolve`.
    """
    url = request.url
    host = url.host
    port = url.port or DEFAULT_PORTS[url.scheme]
    checked = await Address(url.scheme, host, port).resolve()
    request.url = url.copy_with(host=str(checked))
    if url.scheme == "https":
        request.extensions["sni_hostname"] = host


def read_ip(text: str) -> IPAddress:
    """Parse an IP address. An IPv4-mapped one (::ffff:127.0.0.1, as dual-stack sockets report it)
    becomes IPv4. Raises ValueError."""
    address = ip_address(text)
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def bracketed(host: str) -> str:
    """Return the host as it is written in a URL: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def ascii_host(name: str) -> str:
    """Return a name in ASCII (IDNA), or an IP address in canonical form. Raises ValueError."""
    if ":" in name:
        try:
            literal: IPAddress = IPv6Address(name)
        except ValueError:
            raise ValueError(NOT_AN_ADDRESS) from None
        if literal.scope_id:  # type: ignore[union-attr]
            raise AddressRefused(REFUSED)
        return str(check_address(literal))
    try:
        name = name.encode("idna").decode("ascii").rstrip(".")
    except UnicodeError:
        raise ValueError(NOT_AN_ADDRESS) from None
    if re.fullmatch(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}", name):
        # As inet_aton reads it: parts may be hexadecimal or octal, and fewer than four.
        try:
            return str(check_address(IPv4Address(socket.inet_aton(name))))
        except OSError:
            raise ValueError(NOT_AN_ADDRESS) from None
    if not re.fullmatch(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", name) or len(name) > 253:
        raise ValueError(NOT_AN_ADDRESS)
    return name


def check_address(address: IPAddress) -> IPAddress:
    """Raise AddressRefused for a link-local, metadata or multicast address; else return it."""
    for part in with_embedded(address):
        refused = part.is_link_local or part.is_multicast or part.is_unspecified
        if refused or part in METADATA or part == IPv4Address("255.255.255.255"):
            raise AddressRefused(REFUSED)
    return address


def with_embedded(address: IPAddress) -> Iterator[IPAddress]:
    """Yield the address, and IPv4 addresses embedded in an IPv6 one (6to4, Teredo, NAT64)."""
    yield address
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            yield address.ipv4_mapped
        if address.sixtofour:
            yield address.sixtofour
        if address.teredo:
            yield from address.teredo
        if address in NAT64 or int(address) < 1 << 32:
            yield IPv4Address(int(address) & 0xFFFFFFFF)
