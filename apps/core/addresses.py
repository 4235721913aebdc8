"""The address of a server that a person may type in: one parser, and what is never connected to.

Such an address makes this process connect wherever it says, so it is checked twice: as it is typed,
and again, name resolved, each time it is used. Private networks are allowed, model servers live
there; link-local and metadata addresses, which hand out the credentials of a machine in a cloud,
are not, however they are written.
"""

import asyncio
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

IPAddress = IPv4Address | IPv6Address

# What the wire is, for each scheme that may be typed; websockets begin as HTTP.
SCHEMES = {"http": "http", "ws": "http", "https": "https", "wss": "https"}
DEFAULT_PORTS = {"http": 80, "https": 443}
# Metadata services that are not link-local: AWS over IPv6, Alibaba, Azure, Oracle.
METADATA = frozenset(
    map(ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)
NAT64 = ip_network("64:ff9b::/96")
NOT_AN_ADDRESS = "must be an address such as http://127.0.0.1:1234"
REFUSED = "must not lead to a link-local, metadata or multicast address"
RESOLVE_SECONDS = 3.0


@dataclass(frozen=True)
class Address:
    """Scheme (http or https), host and port; `str()` is its one spelling."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read what was typed. Raises ValueError with a sentence that says what it must be.

        ws is http and wss is https. A path of /v1 is dropped: people copy the one that OpenAI's
        clients want. Anything else behind the port, and any user name, is refused.
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
        return cls(scheme, _host(parts.hostname), port or DEFAULT_PORTS[scheme])

    def __str__(self) -> str:
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{bracketed(self.host)}{port}"

    async def resolve(self) -> IPAddress:
        """Where it leads now; an IPv4 address if there is one, since few model servers hear IPv6.

        To be connected to as it is: asked a second time, a name may lead elsewhere. Raises
        ValueError where any of the name's addresses is refused, OSError where it has none.
        """
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(
                self.host, self.port, type=socket.SOCK_STREAM
            )
        addresses = [ip_address(entry[4][0]) for entry in found]
        for address in addresses:
            _check(address)
        return min(addresses, key=lambda address: address.version)


def read_ip(text: str) -> IPAddress:
    """A literal address; one of IPv4 that is written as one of IPv6 (::ffff:127.0.0.1) as what it
    is, since a socket that serves both spells it so. Raises ValueError."""
    address = ip_address(text)
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _host(name: str) -> str:
    """A literal address in its plain form, checked; a name in ASCII."""
    if ":" in name:
        try:
            literal: IPAddress = IPv6Address(name)
        except ValueError:
            raise ValueError(NOT_AN_ADDRESS) from None
        if literal.scope_id:  # type: ignore[union-attr]
            raise ValueError(REFUSED)
        return str(_check(literal))
    try:
        name = name.encode("idna").decode("ascii").rstrip(".")
    except UnicodeError:
        raise ValueError(NOT_AN_ADDRESS) from None
    if re.fullmatch(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}", name):
        # As the system's own resolver reads it: parts may be hex or octal, and run together.
        try:
            return str(_check(IPv4Address(socket.inet_aton(name))))
        except OSError:
            raise ValueError(NOT_AN_ADDRESS) from None
    if not re.fullmatch(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*", name) or len(name) > 253:
        raise ValueError(NOT_AN_ADDRESS)
    return name


def _check(address: IPAddress) -> IPAddress:
    for one in _meant(address):
        refused = one.is_link_local or one.is_multicast or one.is_unspecified
        if refused or one in METADATA or one == IPv4Address("255.255.255.255"):
            raise ValueError(REFUSED)
    return address


def _meant(address: IPAddress) -> Iterator[IPAddress]:
    """The address, and the IPv4 address that an IPv6 one may carry."""
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
