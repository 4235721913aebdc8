"""The front page of a repository: README, languages, where to start, and the newest commits."""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import PurePosixPath
from typing import NamedTuple

from django.utils.safestring import SafeString, mark_safe

from apps.browse.documents import MAX_CHARS, DocumentLinks, can_render, rendered
from apps.browse.history_page import CommitView
from apps.browse.lines import code_url, source_url
from apps.browse.source import read_source
from apps.browse.source_request import SourceRequest
from apps.core.drawing.sizes import spans
from apps.core.errors import CodeinfoError
from apps.index.models import Root
from apps.lookup.history import HistoryQuery, history
from apps.lookup.overview.as_text import percent
from apps.lookup.overview.overview import OverviewQuery, languages_by_size, overview_of
from apps.lookup.relations.types import Relation
from apps.lookup.texts.folders import entries_of
from apps.retrieval.repositories import repo_id

BAR_WIDTH = 1_000  # of the bar of languages, which is stretched
MAX_COMMITS, MAX_SINCE = 6, 100
# A role of a row of Overview, as the page names it.
HEADINGS = {
    "entry point": "Start here",
    "imported": "Imported most",
    "build": "Build",
    "tests": "Test",
    "run": "Run",
}


class LanguageSpan(NamedTuple):
    """A language in a bar. number: of its colour, from 0"""

    name: str
    percent: str
    number: int
    x: int
    width: int


def language_bar(root: Root) -> list[LanguageSpan]:
    languages = languages_by_size(root)
    parts = spans([language.share for language in languages], BAR_WIDTH)
    return [
        LanguageSpan(language.name, percent({"share": language.share}), number, *part)
        for number, (language, part) in enumerate(zip(languages, parts, strict=True))
    ]


class Readme(NamedTuple):
    """url: of the file. is_cut: more of it is there"""

    name: str
    url: str
    html: SafeString
    is_cut: bool


def readme_of(root: Root, folder: str) -> Readme | None:
    """The README of a folder; None if it has none, or none can be read. Only Markdown is
    rendered."""
    files = [
        entry.path
        for entry in entries_of(root, folder)
        if not entry.is_folder and PurePosixPath(entry.name).stem.lower() == "readme"
    ]
    if not files:
        return None
    path = min(files, key=lambda path: (not can_render(path, ()), len(path), path))
    repo = repo_id(root)
    try:
        lines = read_source(SourceRequest(repo, path)).lines
    except CodeinfoError:
        return None
    text = "\n".join(lines)
    is_rendered = can_render(path, lines)
    html = (
        rendered(text, DocumentLinks(root, path))
        if is_rendered
        else mark_safe(f'<pre tabindex="0">{escape(text[:MAX_CHARS])}</pre>')
    )
    name = path.rpartition("/")[2]
    return Readme(name, code_url(repo, path), html, not is_rendered and len(text) > MAX_CHARS)


class Fact(NamedTuple):
    """A place in a repository, and why it is shown. detail: "" for nothing"""

    title: str
    detail: str
    place: str
    url: str


class Facts(NamedTuple):
    groups: Sequence[tuple[str, Sequence[Fact]]]  # by heading
    note: str  # what was not looked at


def facts_of(repo: str) -> Facts:
    """Where to start, what is imported most, and commands. Raises as `overview_of`."""
    overview = overview_of(OverviewQuery.parse({"repository": repo}))
    rows = [row for row in overview.rows if row.role in HEADINGS]
    rows.sort(key=lambda row: list(HEADINGS).index(row.role))
    groups = [
        (HEADINGS[role], list(map(_fact, own)))
        for role, own in groupby(rows, key=lambda row: row.role)
    ]
    return Facts(groups, overview.note or overview.degraded)


def _fact(row: Relation) -> Fact:
    """A command by what to type, an entry point by the definition that it names, and what is
    imported by its file."""
    is_command = row.role in ("build", "tests", "run")
    name = row.symbol if row.role == "entry point" else ""
    title = row.of if is_command else name or row.place.path.rpartition("/")[2]
    place = f"{row.place.path}:{row.line}"
    url = source_url(row.place.repo, row.place.path, row.line, row.line)
    return Fact(title, "" if is_command else row.of, place, f"{url}#L{row.line}")


class Commits(NamedTuple):
    """The newest commits, and what came after the ingest.

    since: ids of commits after the ingested one; at most MAX_SINCE
    diff_url: what they changed
    """

    newest: Sequence[CommitView]
    since: frozenset[str]
    diff_url: str
    history_url: str

    @property
    def since_text(self) -> str:
        """`3`, or `100+`."""
        return f"{MAX_SINCE}+" if len(self.since) >= MAX_SINCE else str(len(self.since))


def commits_of(repo: str) -> Commits:
    """Raises as `history`."""
    form = {"of": "log", "repository": repo}
    newest = history(HistoryQuery.parse({**form, "limit": MAX_COMMITS}))["results"]
    since = history(HistoryQuery.parse({**form, "from": "ingest", "limit": MAX_SINCE}))["results"]
    return Commits(
        [CommitView.of(row, repo) for row in newest],
        frozenset(str(row["commit"]) for row in since),
        source_url(repo, "", None, None, view="diff"),
        source_url(repo, "", None, None, view="history"),
    )
