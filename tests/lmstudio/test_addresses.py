"""The parser of addresses that a user types (apps/core/values/addresses.py)."""

import socket
from typing import Any

import pytest

from apps.core.values.addresses import Address

METADATA = [
    "http://169.254.169.254",
    "http://169.254.169.254.",
    "http://2852039166/",
    "http://0xA9FEA9FE",
    "http://0xa9.0xfe.0xa9.0xfe",
    "http://0251.0376.0251.0376",
    "http://169.254.43518",
    "http://１６９.２５４.１６９.２５４",
    "http://[::ffff:169.254.169.254]:1234",
    "http://[::ffff:a9fe:a9fe]",
    "http://[::a9fe:a9fe]",
    "http://[64:ff9b::a9fe:a9fe]",
    "http://[2002:a9fe:a9fe::]",
    "ws://169.254.0.1:1234",
    "wss://[fe80::1]",
    "http://[fe80::1%25eth0]",
    "http://[fd00:ec2::254]",
    "http://100.100.100.200",
    "http://168.63.129.16",
    "http://0.0.0.0:1234",
    "http://[::]:1234",
    "http://224.0.0.1",
    "http://255.255.255.255",
]
NONSENSE = [
    *("", "localhost", "localhost:1234", "//localhost", "http://", "http://:1234", "ftp://h"),
    *("file:///etc/passwd", "gopher://h", "javascript:alert(1)", "http://h:0", "http://h:99999"),
    *("http://user:secret@h", "http://user@h", "http://h/api", "http://h?x=1", "http://h#x"),
    *("http://a b", "http://a\nb", "http://h\\@evil", "http:\\\\h", "http://a..b", "http://[1::z]"),
    *("http://h\x00", "http://%6c", "http://" + "a" * 64, "http://08.1", "http://a/../v1"),
]


@pytest.mark.fault("An address that leads elsewhere")
@pytest.mark.parametrize("text", METADATA)
def test_link_local_and_metadata_addresses_are_refused_however_they_are_written(text: str) -> None:
    with pytest.raises(ValueError, match="must not lead to a link-local"):
        Address.parse(text)


@pytest.mark.fault("An address that leads elsewhere")
@pytest.mark.parametrize("text", NONSENSE)
def test_an_address_that_is_not_a_servers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a URL such as"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:1234", "http://127.0.0.1:1234"),
        ("HTTP://LocalHost:1234/", "http://localhost:1234"),
        ("ws://localhost:1234", "http://localhost:1234"),
        ("wss://models.example", "https://models.example"),
        ("http://localhost:80", "http://localhost"),
        ("http://127.1:1234/v1/", "http://127.0.0.1:1234"),
        ("http://[0:0::1]:1234", "http://[::1]:1234"),
        ("http://192.168.1.20:1234", "http://192.168.1.20:1234"),
        ("http://host.docker.internal:1234", "http://host.docker.internal:1234"),
        ("http://bücher.example", "http://xn--bcher-kva.example"),
    ],
)
def test_equivalent_addresses_are_normalised(text: str, expected: str) -> None:
    address = Address.parse(text)
    assert str(address) == expected
    assert Address.parse(expected) == address


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> Address:
    """Return an address whose name resolves to these."""

    def getaddrinfo(host: str, port: int, *rest: Any, **more: Any) -> list[Any]:
        kinds = [socket.AF_INET6 if ":" in one else socket.AF_INET for one in addresses]
        ends = zip(kinds, addresses, strict=True)
        return [(kind, socket.SOCK_STREAM, 6, "", (one, port)) for kind, one in ends]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return Address.parse("http://models.example:1234")


@pytest.mark.fault("An address that leads elsewhere")
@pytest.mark.parametrize(
    "addresses",
    [
        ("169.254.169.254",),
        ("192.168.1.20", "169.254.169.254"),
        ("::ffff:169.254.169.254",),
        ("fe80::1%eth0",),
    ],
)
async def test_a_name_that_resolves_to_a_forbidden_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, addresses: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="must not lead to a link-local"):
        await resolving(monkeypatch, *addresses).resolve()


async def test_a_name_is_replaced_by_its_resolved_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(await resolving(monkeypatch, "::1", "127.0.0.1").resolve()) == "127.0.0.1"
    assert str(await resolving(monkeypatch, "::1").resolve()) == "::1"


async def test_a_name_that_does_not_resolve_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*name: Any, **more: Any) -> None:
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with pytest.raises(OSError, match="no such name"):
        await Address.parse("http://nobody.invalid:1234").resolve()
