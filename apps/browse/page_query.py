"""The state of the search page. All of it is in the URL."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import QueryDict

from apps.browse.box import Box
from apps.browse.resolving import read_box
from apps.browse.search_tree import FILTERS

PAGE_LIMITS = (5, 10, 20)
DEFAULT_PAGE_LIMIT = 10
MAX_PAGE = 100
SYMBOLS = "symbols"
Item = TypeVar("Item")


@dataclass(frozen=True)
class PageQuery:
    """`?q=&mode=&repository=&language=&path=&limit=&weaker=&page=`; `repository` may repeat."""

    q: str  # the text, or with SYMBOLS the name; "" shows the empty page
    mode: str  # "" or SYMBOLS
    repositories: tuple[str, ...]  # repository ids; empty: all
    language: str  # "" means all
    path: str  # prefix or glob; "" means all
    limit: int  # one of PAGE_LIMITS
    weaker: bool  # show matches beyond the cutoff
    page: int = 1  # 1 to MAX_PAGE
    box: Box = field(default_factory=Box)  # `q`, once it is parsed (`page_search.interpreted`)

    @classmethod
    def read(cls, data: QueryDict) -> "PageQuery":
        """Treat invalid values as missing: a URL is not a form that could show errors."""
        limit, page = data.get("limit", ""), data.get("page", "")[:9]
        names = (name.strip() for name in data.getlist("repository"))
        return cls(
            q=data.get("q", "").replace("\n", " ").strip(),
            mode=SYMBOLS if data.get("mode") == SYMBOLS else "",
            repositories=tuple(dict.fromkeys(filter(None, names))),
            language=data.get("language", "").strip(),
            path=data.get("path", "").strip(),
            limit=int(limit) if limit in map(str, PAGE_LIMITS) else DEFAULT_PAGE_LIMIT,
            weaker=data.get("weaker") == "1",
            page=min(MAX_PAGE, int(page)) if page.isdecimal() and int(page) else 1,
        )

    def slice(self, rows: Sequence[Item]) -> Sequence[Item]:
        """The rows of the page."""
        first = (self.page - 1) * self.limit
        return rows[first : first + self.limit]

    @property
    def symbols(self) -> bool:
        return self.mode == SYMBOLS

    @property
    def filtered(self) -> bool:
        return bool(self.repositories or self.language or self.path)

    @property
    def scope(self) -> str:
        """The repositories in words: `one and two`, `the ingested repositories`."""
        return " and ".join(self.repositories) or "the ingested repositories"

    @property
    def is_exact(self) -> bool:
        """Return True if there are no words to rank by, only exact texts and expressions."""
        return not self.symbols and self.box.is_wanted and not self.box.words_wanted

    def at(self, text: str) -> "PageQuery":
        """The query with another text in its box, which has no filters of the fields."""
        return replace(self, q=text, box=read_box(text), page=1)

    def as_wire(self, key: str) -> dict[str, Any]:
        """The arguments of a search. `key` is the name of the text: `query`, `pattern`, `name`."""
        return {
            key: self._name if self.symbols else self.box.text or self.q,
            "repository": list(self.repositories),
            "language": self.language,
            "path": self.path,
            "limit": self.limit,
        }

    @property
    def _name(self) -> str:
        kinds = (*FILTERS, "or", "open", "close", "type", "case")
        return self.box.without(*(t for t in self.box.terms if t.kind in kinds)) or self.q

    def url(self, **changes: Any) -> str:
        """The URL of this state with changes. It leads to the first page unless they name one."""
        state = replace(self, **{"page": 1, **changes})
        params = {
            "q": state.q,
            "mode": state.mode,
            "repository": state.repositories,
            "language": state.language,
            "path": state.path,
            "limit": state.limit,
            "weaker": "1" if state.weaker else "",
            "page": str(state.page) if state.page > 1 else "",
        }
        present = {key: value for key, value in params.items() if value}
        return f"/search?{urlencode(present, doseq=True)}"

    @property
    def wide_url(self) -> str:
        """The same query without filters."""
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
        """A new conversation with this query and scope filled in."""
        params = {"q": self.box.text or self.q, "repository": self.repositories}
        return f"/chat?{urlencode(params, doseq=True)}"
