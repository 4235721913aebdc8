"""Where the OpenAI-compatible server is and how it is asked, as the settings say."""

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
def certificates() -> ssl.SSLContext:
    """Those of the machine. Reading them takes 40 ms: once, not for each request."""
    return ssl.create_default_context()


@dataclass(frozen=True)
class Server:
    """Where to ask, and with which key. Only `origin` may be shown or logged."""

    base_url: str
    api_key: str

    @classmethod
    def configured(cls) -> "Server":
        """Raises Unavailable (not retryable) that says which variable is missing or wrong."""
        k = config()
        if not k.openai_base_url:
            raise unavailable(NOT_SET)
        if not (k.openai_api_key.isascii() and k.openai_api_key.isprintable()):
            raise unavailable(BAD_KEY)
        return cls(k.openai_base_url, k.openai_api_key)

    @property
    def origin(self) -> str:
        parts = urlsplit(self.bare_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def bare_url(self) -> str:
        """The address without the name and the password that it may hold."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @property
    def basic(self) -> tuple[str, str] | None:
        """That name and password."""
        parts = urlsplit(self.base_url)
        if not parts.username:
            return None
        return unquote(parts.username), unquote(parts.password or "")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


def unavailable(reason: str, *, retryable: bool = False) -> Unavailable:
    """The error of this provider, with a reason that a person can act on."""
    return Unavailable(reason, code="PROVIDER_UNAVAILABLE", retryable=retryable)
