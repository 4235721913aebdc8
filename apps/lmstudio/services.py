"""The current address of LM Studio: saved on its page, else LMSTUDIO_BASE_URL."""

import logging
from typing import TYPE_CHECKING

from django.db import DatabaseError

from apps.core.addresses import Address
from apps.core.config import config
from apps.core.errors import InvalidInput

if TYPE_CHECKING:
    from apps.lmstudio.models import SavedAddress

log = logging.getLogger("codeinfo.lmstudio")


def current() -> Address:
    """Return the address for status, chat and embedding.

    Falls back to LMSTUDIO_BASE_URL if the database is unavailable.
    """
    try:
        saved = _saved_addresses().objects.first()
    except DatabaseError:
        saved = None
    return Address.parse(saved.base_url) if saved else default()


def default() -> Address:
    """Return the address of LMSTUDIO_BASE_URL."""
    return Address.parse(config().lmstudio_base_url)


def parse(text: str) -> Address:
    """Parse an address. Raises InvalidInput (INVALID_BASE_URL) that says what is wrong."""
    try:
        return Address.parse(text.strip())
    except ValueError as error:
        raise InvalidInput(
            f"The address {error}.", code="INVALID_BASE_URL", details={"baseUrl": text.strip()}
        ) from None


def save(address: Address) -> None:
    """Save an address. It need not answer: the server may start later."""
    _saved_addresses().objects.update_or_create(id=1, defaults={"base_url": str(address)})
    log.info("LM Studio address saved", extra={"context": {"baseUrl": str(address)}})


def reset() -> Address:
    """Delete the saved address. Returns the address of LMSTUDIO_BASE_URL."""
    _saved_addresses().objects.all().delete()
    log.info("LM Studio address reset", extra={"context": {"baseUrl": str(default())}})
    return default()


def _saved_addresses() -> "type[SavedAddress]":
    """Import the model late: it needs settings, and the embedder also runs without them."""
    from apps.lmstudio.models import SavedAddress  # noqa: PLC0415 - needs settings

    return SavedAddress
