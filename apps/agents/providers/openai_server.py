"""The configured OpenAI-compatible server: address, key, TLS."""

import ssl
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit

from apps.core.config import config
from apps.core.errors import Unavailable

NOT_SET = (
    "Set CODEINFO_OPENAI_BASE_URL to an OpenAI-compatible server, "
    "for example http://127.0.0.1:1234/v1, and start again."
)
BAD_KEY = "CODEINFO_OPENAI_API_KEY holds characters that no key has."


@cache
def ssl_context() -> ssl.SSLContext:
    """Load the system's certificates. This takes 40 ms, so the context is cached."""
    return ssl.create_default_context()


@dataclass(frozen=True)
class OpenAIServer:
    """An address and its key. Show and log only `origin`.

    base_url: may contain a user name and a password.
    api_key: empty if there is none.
    """

    base_url: str
    api_key: str

    @classmethod
    def configured(cls) -> "OpenAIServer":
        """Read the settings. Raises Unavailable (not retryable) that names a wrong variable."""
        k = config()
        if not k.openai_base_url:
            raise unavailable(NOT_SET)
        if not (k.openai_api_key.isascii() and k.openai_api_key.isprintable()):
            raise unavailable(BAD_KEY)
        return cls(k.openai_base_url, k.openai_api_key)

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


def unavailable(reason: str, *, retryable: bool = False) -> Unavailable:
    """Return the provider's error; `reason` is a sentence that tells the user what to do."""
    return Unavailable(reason, code="PROVIDER_UNAVAILABLE", retryable=retryable)
