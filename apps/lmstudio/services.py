"""The current LM Studio: saved on a page, or of the environment, which wins."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db import DatabaseError

from apps.core.config import config, is_set
from apps.core.errors import InvalidInput
from apps.core.security.encryption import decrypt, encrypt
from apps.core.values.addresses import Address
from apps.core.values.parsers import lmstudio_token
from apps.logs.redaction import redact_from_now_on

if TYPE_CHECKING:
    from apps.lmstudio.models import SavedAddress

log = logging.getLogger("codeinfo.lmstudio")

ADDRESS_VARIABLE = "LMSTUDIO_BASE_URL"
TOKEN_VARIABLE = "CODEINFO_LMSTUDIO_API_TOKEN"


@dataclass(frozen=True)
class LMStudio:
    """The server for status, chat and embedding.

    token: the API token; "" for none.
    unreadable: a saved token was encrypted with another SECRET_KEY, so there is none.
    """

    address: Address
    token: str = field(default="", repr=False)
    unreadable: bool = False


def server() -> LMStudio:
    """Return the current server. Without a database, that of the settings."""
    try:
        saved = _saved_addresses().objects.first()
    except DatabaseError:
        saved = None
    address = default()
    if saved and not is_address_set():
        address = Address.parse(saved.base_url)
    if config().lmstudio_api_token or saved is None:
        return LMStudio(address, config().lmstudio_api_token)
    if is_address_set() and saved.base_url != str(address):
        return LMStudio(address)
    token = decrypt(saved.token)
    redact_from_now_on(token or "")
    return LMStudio(address, token or "", unreadable=token is None)


def current() -> Address:
    """Return the address for status, chat and embedding.

    Falls back to LMSTUDIO_BASE_URL if the database is unavailable.
    """
    return server().address


def default() -> Address:
    """Return the address of LMSTUDIO_BASE_URL."""
    return Address.parse(config().lmstudio_base_url)


def is_address_set() -> bool:
    """Whether the environment sets the address, so that no other can be saved."""
    return is_set(ADDRESS_VARIABLE)


def parse(text: str) -> Address:
    """Parse an address. Raises InvalidInput (INVALID_BASE_URL) that says what is wrong."""
    try:
        return Address.parse(text.strip())
    except ValueError as error:
        raise InvalidInput(
            f"The address {error}.", code="INVALID_BASE_URL", details={"baseUrl": text.strip()}
        ) from None


def save(address: Address, token: str | None = None) -> None:
    """Save an address. It need not answer: the server may start later.

    token: the new API token; None keeps the saved one if the address stays the same, as a token
        must not be sent to another address.

    Raises InvalidInput (SET_BY_ENVIRONMENT) for an address that the environment overrides.
    """
    now = server()
    if is_address_set() and address != now.address:
        raise set_by_environment()
    values = {"base_url": str(address)}
    if token is not None or address != now.address:
        redact_from_now_on(token or "")
        values["token"] = encrypt(token or "")
    _saved_addresses().objects.update_or_create(id=1, defaults=values)
    log.info("LM Studio address saved", extra={"context": {"baseUrl": str(address)}})


def typed(address: str, token: str) -> LMStudio:
    """Return the server of the fields of a form, without saving it.

    A blank token is the current one if the address is the current one. Raises InvalidInput.
    """
    now, typed_address, typed_token = server(), parse(address), parse_token(token)
    if typed_token is None or config().lmstudio_api_token:
        typed_token = now.token if typed_address == now.address else ""
    redact_from_now_on(typed_token)
    return LMStudio(typed_address, typed_token)


def parse_token(text: str) -> str | None:
    """Return the token in a field; None if it is blank. Raises InvalidInput (INVALID_KEY)."""
    try:
        return lmstudio_token(text.strip()) if text.strip() else None
    except ValueError as error:
        raise InvalidInput(f"The token {error}.", code="INVALID_KEY") from None


def is_saved() -> bool:
    """Whether an address is saved."""
    return bool(_saved_addresses().objects.exists())


def reset() -> Address:
    """Delete the saved address and token. Returns the address of LMSTUDIO_BASE_URL."""
    _saved_addresses().objects.all().delete()
    log.info("LM Studio address reset", extra={"context": {"baseUrl": str(default())}})
    return default()


def set_by_environment() -> InvalidInput:
    """Return the error of a value that the environment overrides."""
    return InvalidInput(
        f"{ADDRESS_VARIABLE} sets the address where codeinfo runs, so it cannot be changed here.",
        code="SET_BY_ENVIRONMENT",
    )


def _saved_addresses() -> "type[SavedAddress]":
    """Import the model late: it needs settings, and the embedder also runs without them."""
    from apps.lmstudio.models import SavedAddress  # noqa: PLC0415 - needs settings

    return SavedAddress
