"""A server of models, with its key."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Server:
    """An address and its key. Show and log only `origin`.

    address: "" if there is no server. That of the environment may contain a user name and a
        password. LM Studio's has no /v1.
    key: empty if there is none.
    is_saved: entered on a page.
    is_unreadable: a key is saved, but was encrypted with another SECRET_KEY.
    """

    kind: str
    address: str = field(repr=False)
    key: str = field(default="", repr=False)
    is_saved: bool = False
    is_unreadable: bool = False

    @property
    def origin(self) -> str:
        """Scheme, host and port, without credentials."""
        parts = urlsplit(self.bare_url)
        return parts._replace(path="").geturl()

    @property
    def bare_url(self) -> str:
        """The address without its user name and password."""
        parts = urlsplit(self.address)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @property
    def basic_auth(self) -> tuple[str, str] | None:
        """The address's user name and password, for HTTP Basic authentication; None without."""
        parts = urlsplit(self.address)
        if not parts.username:
            return None
        return unquote(parts.username), unquote(parts.password or "")

    @property
    def api(self) -> str:
        """The address of its OpenAI-compatible API, to which paths are added."""
        return f"{self.address}/v1" if self.kind == "lmstudio" else self.address

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    @property
    def is_checked(self) -> bool:
        """Whether its name is resolved and checked for each connection."""
        return self.is_saved or self.kind == "lmstudio"
