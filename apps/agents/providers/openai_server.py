"""The HTTP client of an OpenAI-compatible server; sentences that say what is missing of it."""

import ssl
from functools import cache
from typing import Any

import httpx

from apps.core.errors import Unavailable
from apps.core.http import replies
from apps.servers.kinds import BAD_KEY, OPENAI
from apps.servers.types import Server

NOT_SET = (
    "Enter the address of an OpenAI-compatible server on the Providers page, or set "
    f"{OPENAI.address_variable}, for example to http://127.0.0.1:1234/v1, and start again."
)
UNREADABLE = (
    "The saved key was encrypted with another server key: enter it again on the Providers page."
)


@cache
def ssl_context() -> ssl.SSLContext:
    """Load the system's certificates. This takes 40 ms, so the context is cached."""
    return ssl.create_default_context()


def client(server: Server, **options: Any) -> httpx.AsyncClient:
    """Return a client with the server's key, its user name and password, and options of
    `replies.client`."""
    return replies.client(
        base_url=server.bare_url,
        auth=server.basic_auth,
        headers=server.headers,
        verify=ssl_context(),
        checked=server.is_checked,
        **options,
    )


def checked(server: Server) -> Server:
    """Return the server. Raises Unavailable (not retryable) that says what is missing."""
    if not server.address:
        raise unavailable(NOT_SET)
    if server.is_unreadable:
        raise unavailable(UNREADABLE)
    if not (server.key.isascii() and server.key.isprintable()):
        raise unavailable(f"{OPENAI.key_variable} {BAD_KEY}.")
    return server


def key_problem(server: Server) -> str:
    """What to do if the server does not accept the key, or has none; completes a sentence that
    starts with the server's name."""
    variable = OPENAI.key_variable
    if server.key:
        where = "correct it on the Providers page" if server.is_saved else f"check {variable}"
        return f"refused the key: {where}."
    where = "enter it on the Providers page" if server.is_saved else f"set {variable}"
    return f"asks for a key: {where}."


def unavailable(reason: str, *, retryable: bool = False) -> Unavailable:
    """Return the provider's error; `reason` is a sentence that tells the user what to do."""
    return Unavailable(reason, code="PROVIDER_UNAVAILABLE", retryable=retryable)
