"""The kinds of servers: what the environment sets for each, and how its forms are parsed."""

from collections.abc import Callable
from dataclasses import dataclass

from apps.core.config import config, is_set
from apps.core.values.addresses import Address, split_address
from apps.core.values.parsers import lmstudio_token

MAX_KEY = 1_000
BAD_KEY = "holds characters that no key has"


@dataclass(frozen=True)
class Environment:
    """What the environment sets for a kind of server, or the default.

    is_address_set: no other address can be saved.
    is_key_set: no key can be saved.
    """

    address: str
    key: str
    is_address_set: bool
    is_key_set: bool

    @property
    def is_complete(self) -> bool:
        """Whether nothing can be saved."""
        return self.is_address_set and self.is_key_set


@dataclass(frozen=True)
class Kind:
    """A kind of server. Of each, one can be saved.

    key_name: what an error calls the key.
    parse_address, parse_key: raise ValueError with a clause about the address or the key.
    """

    id: str
    key_name: str
    address_variable: str
    key_variable: str
    parse_address: Callable[[str], str]
    parse_key: Callable[[str], str]
    environment: Callable[[], Environment]


def _openai_key(text: str) -> str:
    if len(text) > MAX_KEY or not (text.isascii() and text.isprintable()):
        raise ValueError(BAD_KEY)
    return text


def _openai_environment() -> Environment:
    address = config().openai_base_url
    # Its key is for its address only.
    return Environment(address, address and config().openai_api_key, bool(address), bool(address))


def _lmstudio_environment() -> Environment:
    token = config().lmstudio_api_token
    is_address_set = is_set(LMSTUDIO.address_variable)
    return Environment(config().lmstudio_base_url, token, is_address_set, bool(token))


OPENAI = Kind(
    id="openai",
    key_name="key",
    address_variable="CODEINFO_OPENAI_BASE_URL",
    key_variable="CODEINFO_OPENAI_API_KEY",
    parse_address=lambda text: split_address(text)[1],
    parse_key=_openai_key,
    environment=_openai_environment,
)
LMSTUDIO = Kind(
    id="lmstudio",
    key_name="token",
    address_variable="LMSTUDIO_BASE_URL",
    key_variable="CODEINFO_LMSTUDIO_API_TOKEN",
    parse_address=lambda text: str(Address.parse(text)),
    parse_key=lmstudio_token,
    environment=_lmstudio_environment,
)
