"""The current OpenAI-compatible server: address, key, TLS.

CODEINFO_OPENAI_BASE_URL names it together with CODEINFO_OPENAI_API_KEY. If the environment sets no
address, the one that was saved on the Providers page is used, with the key that was saved with it.
The row is read for each request, so a change applies at once in every process.
"""

import ssl
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

from channels.db import database_sync_to_async
from django.db import DatabaseError

from apps.agents.models import SavedServer
from apps.core.config import config
from apps.core.errors import InvalidInput, Unavailable
from apps.core.security.encryption import decrypt, encrypt
from apps.core.values.addresses import connect_to_checked, split_address
from apps.logs.redaction import redact_from_now_on

ADDRESS_VARIABLE = "CODEINFO_OPENAI_BASE_URL"
KEY_VARIABLE = "CODEINFO_OPENAI_API_KEY"
MAX_ADDRESS, MAX_KEY = 300, 1_000
NOT_SET = (
    "Enter the address of an OpenAI-compatible server on the Providers page, or set "
    f"{ADDRESS_VARIABLE}, for example to http://127.0.0.1:1234/v1, and start again."
)
BAD_KEY = "holds characters that no key has."
UNREADABLE = (
    "The saved key was encrypted with another server key: enter it again on the Providers page."
)


@cache
def ssl_context() -> ssl.SSLContext:
    """Load the system's certificates. This takes 40 ms, so the context is cached."""
    return ssl.create_default_context()


@dataclass(frozen=True)
class OpenAIServer:
    """An address and its key. Show and log only `origin`.

    base_url: may contain a user name and a password.
    api_key: empty if there is none.
    is_saved: entered on a page, so its name is resolved and checked for each connection.
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)
    is_saved: bool = False

    @property
    def origin(self) -> str:
        """Scheme, host and port, without credentials."""
        parts = urlsplit(self.bare_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def bare_url(self) -> str:
        """The address without its user name and password."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @property
    def basic_auth(self) -> tuple[str, str] | None:
        """The address's user name and password, for HTTP Basic authentication; None without."""
        parts = urlsplit(self.base_url)
        if not parts.username:
            return None
        return unquote(parts.username), unquote(parts.password or "")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}

    @property
    def client_options(self) -> dict[str, Any]:
        """Further options of an HTTP client. A saved address is reached without a proxy, because
        a proxy would resolve its name again."""
        return {"trust_env": False} if self.is_saved else {}

    @property
    def request_hooks(self) -> list[Any]:
        return [connect_to_checked] if self.is_saved else []

    @property
    def key_problem(self) -> str:
        """What to do if the server does not accept the key, or has none; completes a sentence that
        starts with the server's name."""
        if self.api_key:
            where = "correct it on the Providers page" if self.is_saved else f"check {KEY_VARIABLE}"
            return f"refused the key: {where}."
        where = "enter it on the Providers page" if self.is_saved else f"set {KEY_VARIABLE}"
        return f"asks for a key: {where}."


@dataclass(frozen=True)
class SavedState:
    """What is saved, for the page; without the key.

    base_url: "" if nothing is saved.
    has_key: a key is saved and can be decrypted.
    is_unreadable: a key is saved, but was encrypted with another SECRET_KEY.
    """

    base_url: str = ""
    has_key: bool = False
    is_unreadable: bool = False


async def current_server() -> OpenAIServer:
    """Return the server for lists and answers.

    Raises Unavailable (not retryable) that says what is missing.
    """
    if config().openai_base_url:
        return _of_environment()
    # A read need not wait for the one thread that Django's writes share.
    read = database_sync_to_async(saved_server, thread_sensitive=False)
    server: OpenAIServer = await read()
    return server


def is_set_up() -> bool:
    """Whether there is an address, of the environment or saved."""
    return bool(config().openai_base_url) or _row() is not None


def _of_environment() -> OpenAIServer:
    k = config()
    if not (k.openai_api_key.isascii() and k.openai_api_key.isprintable()):
        raise unavailable(f"{KEY_VARIABLE} {BAD_KEY}")
    return OpenAIServer(k.openai_base_url, k.openai_api_key)


def saved_server() -> OpenAIServer:
    """Return the saved server. Raises Unavailable."""
    row = _row()
    if row is None:
        raise unavailable(NOT_SET)
    key = decrypt(row.api_key)
    if key is None:
        raise unavailable(UNREADABLE)
    redact_from_now_on(key)
    return OpenAIServer(row.base_url, key, is_saved=True)


def saved_state() -> SavedState:
    """Return what is saved, without the key."""
    row = _row()
    if row is None:
        return SavedState()
    key = decrypt(row.api_key)
    return SavedState(row.base_url, bool(key), is_unreadable=key is None)


def typed_server(address: str, key: str) -> OpenAIServer:
    """Return the server of the fields of a form.

    A blank key is the saved one if the address is the saved one. It is never sent to another
    address. Raises InvalidInput (INVALID_BASE_URL, INVALID_KEY).
    """
    base_url = _parsed(address)
    key = key.strip()
    if len(key) > MAX_KEY or not (key.isascii() and key.isprintable()):
        raise InvalidInput(f"The key {BAD_KEY}", code="INVALID_KEY")
    redact_from_now_on(key)
    row = _row()
    if not key and row is not None and row.base_url == base_url:
        key = decrypt(row.api_key) or ""
    return OpenAIServer(base_url, key, is_saved=True)


async def typed_in_thread(address: str, key: str) -> OpenAIServer:
    """As `typed_server`, from a coroutine."""
    server: OpenAIServer = await database_sync_to_async(typed_server)(address, key)
    return server


def environment_address() -> str:
    """The address that the environment sets, without user name and password."""
    return OpenAIServer(config().openai_base_url, "").bare_url


def save(server: OpenAIServer) -> None:
    """Save a server of `typed_server`. It need not answer: it may start later.

    Raises InvalidInput (SET_BY_ENVIRONMENT) if the environment sets another one.
    """
    if config().openai_base_url:
        raise InvalidInput(
            f"{ADDRESS_VARIABLE} is set where codeinfo runs, so nothing can be changed here.",
            code="SET_BY_ENVIRONMENT",
        )
    values = {"base_url": server.base_url, "api_key": encrypt(server.api_key)}
    SavedServer.objects.update_or_create(id=1, defaults=values)


def forget() -> None:
    """Delete the saved server and its key."""
    SavedServer.objects.all().delete()


def _parsed(address: str) -> str:
    text = address.strip()
    try:
        if len(text) > MAX_ADDRESS:
            raise ValueError(f"must have at most {MAX_ADDRESS} characters")
        return split_address(text)[1]
    except ValueError as error:
        raise InvalidInput(f"The address {error}.", code="INVALID_BASE_URL") from None


def _row() -> SavedServer | None:
    try:
        return SavedServer.objects.first()
    except DatabaseError:
        return None


def unavailable(reason: str, *, retryable: bool = False) -> Unavailable:
    """Return the provider's error; `reason` is a sentence that tells the user what to do."""
    return Unavailable(reason, code="PROVIDER_UNAVAILABLE", retryable=retryable)
