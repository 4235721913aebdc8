"""The state of the search page, which is its address."""

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

PAGE_LIMITS = (5, 10, 20)
DEFAULT_PAGE_LIMIT = 10
SYMBOLS = "symbols"


@dataclass(frozen=True)
class PageQuery:
    """`?q=&mode=&repository=&language=&path=&limit=&weaker=`, `repository` any number of times.
    `mode` is "" or SYMBOLS."""

    q: str
    mode: str
    repositories: tuple[str, ...]
    language: str
    path: str
    limit: int
    weaker: bool

    @classmethod
    def read(cls, data: QueryDict) -> "PageQuery":
        """What cannot be right is read as left out: an address is not a form to be scolded for."""
        limit = data.get("limit", "")
        names = (name.strip() for name in data.getlist("repository"))
        return cls(
            q=data.get("q", "").strip(),
            mode=SYMBOLS if data.get("mode") == SYMBOLS else "",
            repositories=tuple(dict.fromkeys(filter(None, names))),
            language=data.get("language", "").strip(),
            path=data.get("path", "").strip(),
            limit=int(limit) if limit in map(str, PAGE_LIMITS) else DEFAULT_PAGE_LIMIT,
            weaker=data.get("weaker") == "1",
        )

    @property
    def symbols(self) -> bool:
        return self.mode == SYMBOLS

    @property
    def filtered(self) -> bool:
        return bool(self.repositories or self.language or self.path)

    @property
    def scope(self) -> str:
        """Where is looked, in words: `one and two`, `the ingested repositories`."""
        return " and ".join(self.repositories) or "the ingested repositories"

    def asked(self, key: str) -> dict[str, Any]:
        """What to ask for, `q` under the name that the question takes it by."""
        return {
            key: self.q,
            "repository": list(self.repositories),
            "language": self.language,
            "path": self.path,
            "limit": self.limit,
        }

    def url(self, **changes: Any) -> str:
        """The address of this state with some of it changed."""
        state = replace(self, **changes)
        params = {
            "q": state.q,
            "mode": state.mode,
            "repository": state.repositories,
            "language": state.language,
            "path": state.path,
            "limit": state.limit,
            "weaker": "1" if state.weaker else "",
        }
        given = {key: value for key, value in params.items() if value}
        return f"/search?{urlencode(given, doseq=True)}"

    @property
    def wide_url(self) -> str:
        """Without any filter."""
        return self.url(repositories=(), language="", path="")

    @property
    def weaker_url(self) -> str:
        return self.url(weaker=True)

    @property
    def strict_url(self) -> str:
        return self.url(weaker=False)

    @property
    def other_mode_url(self) -> str:
        return self.url(mode="" if self.symbols else SYMBOLS)

    @property
    def chat_url(self) -> str:
        """The same question in the same scope, ready to be asked in a new conversation."""
        one = self.repositories[0] if len(self.repositories) == 1 else ""
        given = {"q": self.q, "repository": one}
        return f"/chat?{urlencode({key: value for key, value in given.items() if value})}"
