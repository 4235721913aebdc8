"""Whose word counts for where a request comes from, and for whether it came over HTTPS."""

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator

from apps.core.http.proxies import TrustedProxies

PROXY = "127.0.0.1"


@pytest.fixture(autouse=True)
def behind_a_proxy(configure: Callable[..., None]) -> None:
    networks = tuple(map(ip_network, (PROXY, "10.0.0.0/8", "fd00::/8")))
    configure(trusted_proxies=networks, secure_proxy_header="X-Forwarded-Proto")


async def scope_behind(peer: str, **headers: str) -> tuple[str, dict[str, str]]:
    """The client's address and the headers as the application sees them."""
    found: dict[str, Any] = {}

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        found.update(scope)

    pairs = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "client": (peer, 1), "headers": pairs}
    await ApplicationCommunicator(TrustedProxies(app), scope).wait()
    return found["client"][0], {name.decode(): text.decode() for name, text in found["headers"]}


@pytest.mark.fault("A proxy, or a forged address")
@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("1.1.1.1, 203.0.113.7", "203.0.113.7"),
        ("1.1.1.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ("203.0.113.7:4711", "203.0.113.7"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("2001:db8::1, fd00::2", "2001:db8::1"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("unknown", PROXY),
        ("203.0.113.7, junk, 10.1.2.3", "10.1.2.3"),
        ("", PROXY),
    ],
)
async def test_the_last_address_that_is_no_proxy_counts(forwarded: str, client: str) -> None:
    assert (await scope_behind(PROXY, x_forwarded_for=forwarded))[0] == client


@pytest.mark.fault("A proxy, or a forged address")
async def test_nobody_else_is_believed() -> None:
    address, headers = await scope_behind(
        "203.0.113.9", x_forwarded_for="127.0.0.1", x_forwarded_proto="https", accept="*/*"
    )
    assert address == "203.0.113.9"
    assert "x-forwarded-proto" not in headers
    assert headers["accept"] == "*/*"


async def test_a_proxy_can_report_https() -> None:
    assert (await scope_behind(PROXY, x_forwarded_proto="https"))[1]["x-forwarded-proto"] == "https"
