"""What the command palette (Ctrl K) finds: repositories, files, symbols, conversations, lines.

Two requests answer: the first looks up names and exact text, the second searches by meaning, which
may have to ask an embedding server. Each group is bounded in rows. When the time of the request is
over, the other groups are left out, and the palette says so.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.db import Error

from apps.browse.lines import code_url, source_url
from apps.browse.names import files_alike, files_named, symbols_alike, symbols_named
from apps.conversations import queries, searching
from apps.conversations.searching import Snippet
from apps.conversations.transcript import address
from apps.core.errors import CodeinfoError, Unavailable
from apps.index.queries import published_roots
from apps.lookup.symbols.definitions import Hit
from apps.lookup.symbols.types import Place
from apps.lookup.texts.finding import started
from apps.lookup.texts.grep_page import line_page
from apps.lookup.texts.grep_query import GrepQuery
from apps.lookup.texts.patterns import Pattern
from apps.retrieval.query import SearchQuery
from apps.retrieval.repositories import repo_id
from apps.retrieval.search import search

log = logging.getLogger("codeinfo.site")

MAX_TEXT = 200  # characters
MIN_LINES = 2  # characters of text that is looked for in lines
LIMIT = 5  # rows of a group
SECONDS = 1.5  # of the first request, and of the lines in it
MAX_LINE = 160
# `app.py:120`, `app.py:120-130` and `app.py:120:8`, as compilers and editors write places.
LINE_SUFFIX = re.compile(r":([1-9]\d{0,6})(?:-(\d{1,7})|:\d{1,7})?:?$")
# Groups that are left out if there are files or symbols.
ALIKE = ("symbols-alike", "files-alike")
BEFORE = 20  # characters of a line before what is looked for: a phone shows 40


@dataclass(frozen=True)
class Option:
    """A row of the palette."""

    url: str
    icon: str
    title: str
    detail: str = ""
    snippet: Snippet | None = None


@dataclass(frozen=True)
class Group:
    name: str
    title: str
    options: Sequence[Option]


Find = Callable[[str, float], Iterable[Option]]


def find(text: str) -> dict[str, Any]:
    """The groups that have rows, and the titles of those that failed or were left out."""
    until = time.monotonic() + SECONDS
    groups: list[Group] = []
    missing: list[str] = []
    for name, title, look_up in GROUPS:
        if name in ALIKE and any(group.name in ("files", "symbols") for group in groups):
            continue
        try:
            options = list(look_up(text, until)) if time.monotonic() < until else None
        except (CodeinfoError, Error) as error:
            if getattr(error, "code", "") == "INGEST_REQUIRED":
                continue
            log.warning("palette: no %s", name, extra={"context": {"reason": str(error)}})
            options = None
        if options is None:
            missing.append(title.lower())
        elif options:
            groups.append(Group(name, title, options))
    return {"groups": groups, "missing": list(dict.fromkeys(missing))}


def find_by_meaning(text: str) -> dict[str, Any]:
    """As `find`, for passages by their meaning; weak matches are left out."""
    try:
        result = search(replace(SearchQuery.parse({"query": text}), limit=LIMIT))
    except CodeinfoError as error:
        is_empty = error.code == "INGEST_REQUIRED"
        return {"groups": [], "missing": [] if is_empty else ["lines by meaning"]}
    options = [
        Option(
            source_url(match.repo, match.rel_path, match.start_line, match.end_line),
            "search",
            f"{match.rel_path}:{match.start_line}" if match.start_line else match.rel_path,
            " · ".join(filter(None, (match.repo, match.symbol))),
            Snippet(_first_line(match.chunk), "", ""),
        )
        for match in result.matches
        if not match.is_weak
    ]
    return {"groups": [Group("meaning", "Lines by meaning", options)] if options else []}


def _first_line(chunk: str) -> str:
    lines = (line.strip() for line in chunk.splitlines())
    return next((line for line in lines if line), "")[:MAX_LINE]


def _repositories(text: str, until: float) -> Iterable[Option]:
    words = text.lower().split()
    ids = sorted({repo_id(root) for root in published_roots()})
    matches = [repo for repo in ids if all(word in repo.lower() for word in words)]
    matches.sort(key=lambda repo: not repo.lower().startswith(words[0]))
    return [Option(code_url(repo), "repo", repo) for repo in matches[:LIMIT]]


def _files(
    look_up: Callable[[str, int], Iterable[Place]], text: str, until: float
) -> Iterable[Option]:
    match = LINE_SUFFIX.search(text)
    name, shown = (text[: match.start()], match[0]) if match else (text, "")
    start, end = (int(number or 0) for number in match.groups()) if match else (0, 0)
    lines = (start or None, end if end > start else None)
    return [
        Option(
            source_url(place.repo, place.path, *lines), "file", f"{place.path}{shown}", place.repo
        )
        for place in look_up(name, LIMIT)
    ]


def _defined(hits: Iterable[Hit]) -> Iterator[Option]:
    for root, symbol in hits:
        repo = repo_id(root)
        url = source_url(repo, symbol.file_path, symbol.start_line, symbol.end_line)
        place = f"{repo}/{symbol.file_path}:{symbol.start_line}"
        yield Option(url, "list", symbol.path, f"{symbol.kind} · {place}")


def _conversations(text: str, until: float) -> Iterable[Option]:
    conversations = searching.having(queries.visible(), text).order_by("-last_message_at", "-pk")
    rows = list(conversations[:LIMIT])
    snippets = searching.snippets(rows, text)
    for row in rows:
        detail, url = "archived" if row.archived else "", address(row.id, row.agent_name)
        snippet = snippets.get(row.pk)
        if snippet and snippet.turn:  # it may be on a hidden branch
            url += "&" + urlencode({"turn": snippet.turn})
        yield Option(url, "chat", row.title, detail, snippet)


def _lines(text: str, until: float) -> Iterable[Option]:
    if len(text) < MIN_LINES:
        return
    running = started(GrepQuery(Pattern(text, fixed=True)))
    running.until = until
    rows, _ = line_page(running, 0, LIMIT)
    if running.stopped and not rows:
        raise Unavailable("The time is over.")
    for hit in rows:
        url = source_url(hit.place.repo, hit.place.path, hit.line, hit.end_line)
        detail = " · ".join(filter(None, (hit.place.repo, hit.symbol)))
        snippet = _snippet(hit.text.strip(), text)
        yield Option(url, "search", f"{hit.place.path}:{hit.line}", detail, snippet)


def _snippet(line: str, text: str) -> Snippet:
    before, words, after = line.partition(text)
    cut = before[-BEFORE:]
    return Snippet(cut if cut == before else f"…{cut}", words, after[:MAX_LINE])


GROUPS: tuple[tuple[str, str, Find], ...] = (
    ("repositories", "Repositories", _repositories),
    ("files", "Files", partial(_files, files_named)),
    ("symbols", "Symbols", lambda text, until: _defined(symbols_named(text, LIMIT))),
    ("conversations", "Conversations", _conversations),
    ("lines", "Lines with exactly this", _lines),
    (ALIKE[0], "Symbols", lambda text, until: _defined(symbols_alike(text, LIMIT, until))),
    (ALIKE[1], "Files", partial(_files, files_alike)),
)
