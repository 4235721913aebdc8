"""Which LM Studio is used: the address saved on its page, else LMSTUDIO_BASE_URL."""

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
    """The address for status, chat and embedding. While the database is away: the variable's."""
    try:
        saved = _saved().objects.first()
    except DatabaseError:
        saved = None
    return Address.parse(saved.base_url) if saved else default()


def default() -> Address:
    return Address.parse(config().lmstudio_base_url)


def parse(text: str) -> Address:
    """Raises InvalidInput (INVALID_BASE_URL) that says what an address must be."""
    try:
        return Address.parse(text.strip())
    except ValueError as error:
        raise InvalidInput(
            f"The address {error}.", code="INVALID_BASE_URL", details={"baseUrl": text.strip()}
        ) from None


def save(address: Address) -> None:
    """Use this one from now on, whether it answers or not: it may be started later."""
    _saved().objects.update_or_create(id=1, defaults={"base_url": str(address)})
    log.info("LM Studio address saved", extra={"context": {"baseUrl": str(address)}})


def reset() -> Address:
    """Back to the variable's address."""
    _saved().objects.all().delete()
    log.info("LM Studio address reset", extra={"context": {"baseUrl": str(default())}})
    return default()


def _saved() -> "type[SavedAddress]":
    """The rows; a model needs Django's settings, and the embedder is used without them, too."""
    from apps.lmstudio.models import SavedAddress  # noqa: PLC0415 - needs settings

    return SavedAddress
