"""What the code browser shows of commits: the log, blame and the change of a commit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from apps.browse.highlight import highlight_lines
from apps.browse.lines import code_url, source_url, span_of
from apps.browse.source import SourceView
from apps.code.notebooks import is_notebook_path
from apps.core.errors import CodeinfoError
from apps.lookup.history import HistoryQuery, history
from apps.retrieval.paging import finished

# The values of `view`, and what History calls them.
VIEWS = {"history": "log", "blame": "blame", "diff": "diff"}
CHANGED_URL = "/ui/code/changed"
LIMIT = 50
SHORT = 8  # characters of an id
# The class of a line of a diff, by its first character.
SIDES = {"+": "is-added", "-": "is-deleted", "@": "is-hunk"}


@dataclass(frozen=True)
class CommitView:
    """A commit with links.

    date: None if git does not know one
    old_path: of the file then, if it had another one
    """

    id: str
    date: datetime | None
    author: str
    message: str
    is_boundary: bool
    url: str  # of what it changed
    old_path: str

    @classmethod
    def of(cls, row: Mapping[str, Any], repo: str) -> "CommitView":
        commit = str(row["commit"])
        url = source_url(repo, "", None, None, view="diff", to=commit)
        boundary = bool(row.get("boundary"))
        old = row.get("oldPath", "")
        return cls(commit, _time(row["date"]), row["author"], row["message"], boundary, url, old)

    @property
    def short(self) -> str:
        return self.id[:SHORT]

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]

    @property
    def body(self) -> str:
        return self.message.partition("\n")[2].strip()


class BlamedLines(NamedTuple):
    """Lines that come from one commit; None if they are not committed."""

    commit: CommitView | None
    lines: SafeString


class ChangedFile(NamedTuple):
    """A file of a diff. url: "" if it is deleted"""

    path: str
    old_path: str
    kind: str
    url: str
    lines: SafeString


class Tab(NamedTuple):
    name: str
    url: str
    is_current: bool


@dataclass(frozen=True)
class HistoryView:
    """A page of commits, of lines, or of changes."""

    view: str
    repo: str
    path: str
    lines: str  # `12–40`; "" for all
    tabs: Sequence[Tab]
    notes: str
    hint: str  # if nothing is there
    next_url: str  # "" on the last page
    commit: CommitView | None = None  # whose change is shown
    commits: Sequence[CommitView] = ()
    blamed: Sequence[BlamedLines] = ()
    files: Sequence[ChangedFile] = ()


def history_view(repo: str, path: str, data: Mapping[str, str], *, is_file: bool) -> HistoryView:
    """What `view` asks for. Raises as `history`."""
    view, lines = data["view"], data.get("lines", "")
    wanted = {"lines": lines, "to": data.get("to", ""), "cursor": data.get("cursor", "")}
    form = {"of": VIEWS[view], "repository": repo, "path": path, "limit": LIMIT, **wanted}
    output = finished(history(HistoryQuery.parse(form)))
    rows = output["results"]
    following = {"view": view, "to": wanted["to"], "cursor": output.get("nextCursor", "")}
    start, end = _span(lines)
    return HistoryView(
        view,
        repo,
        path,
        span_of(start, end),
        list(_tabs(repo, path, lines, view, is_file=is_file)),
        output.get("notes", ""),
        "" if rows else output.get("hint") or "No commit is known of it.",
        source_url(repo, path, start, end, **following) if following["cursor"] else "",
        CommitView.of(output["commit"], repo) if "commit" in output else None,
        [CommitView.of(row, repo) for row in rows] if view == "history" else (),
        _blamed(rows, repo, path) if view == "blame" else (),
        _files(rows, repo) if view == "diff" else (),
    )


def last_change(repo: str, path: str, lines: str) -> CommitView | None:
    """The commit that changed some lines last; None if it is not known."""
    form = {"of": "log", "repository": repo, "path": path, "lines": lines, "limit": 1}
    try:
        rows = history(HistoryQuery.parse(form))["results"]
    except CodeinfoError:
        return None
    return CommitView.of(rows[0], repo) if rows else None


class Links(NamedTuple):
    """history: the page with the commits that changed the cited lines, or the file
    changed: the fragment with the commit that changed the cited lines last; "" for none"""

    history: str
    changed: str


def links_of(source: SourceView) -> Links | None:
    """The links from a file to its commits; None if it has none."""
    if not source.has_history:
        return None
    repo, path = source.repo, source.path
    if source.start is None or source.notebook or source.is_json:
        return Links(history_url(repo, path, None, None), "")
    lines = f"{source.start}-{source.end or source.start}"
    changed = f"{CHANGED_URL}?{urlencode({'repo': repo, 'path': path, 'lines': lines})}"
    return Links(history_url(repo, path, source.start, source.end), changed)


def change_url(repo: str, path: str, lines: str) -> str:
    """The page with the commits that changed lines that `last_change` has read."""
    return history_url(repo, path, *_span(lines))


def history_url(repo: str, path: str, start: int | None, end: int | None) -> str:
    """The page with the commits that changed lines; None: all lines."""
    return source_url(repo, path, start, end, view="history")


def _span(lines: str) -> tuple[int | None, int | None]:
    first, _, last = lines.partition("-")
    return (int(first) if first.isdigit() else None), (int(last) if last.isdigit() else None)


def _tabs(repo: str, path: str, lines: str, view: str, *, is_file: bool) -> Iterator[Tab]:
    start, end = _span(lines)
    yield Tab("Code", source_url(repo, path, start, end), is_current=False)
    yield Tab("History", history_url(repo, path, start, end), view == "history")
    if is_file and not is_notebook_path(path):
        yield Tab("Blame", source_url(repo, path, start, end, view="blame"), view == "blame")


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _blamed(rows: Sequence[Mapping[str, Any]], repo: str, path: str) -> list[BlamedLines]:
    text = "\n".join(row["chunk"] for row in rows)
    html = highlight_lines(text, path=path)
    blamed, at = [], 0
    for row in rows:
        count = row["endLine"] - row["startLine"] + 1
        numbered = (
            _line(repo, path, row["startLine"] + n, line)
            for n, line in enumerate(html[at : at + count])
        )
        commit = CommitView.of(row, repo) if "commit" in row else None
        blamed.append(BlamedLines(commit, mark_safe("".join(numbered))))
        at += count
    return blamed


def _line(repo: str, path: str, number: int, html: SafeString) -> SafeString:
    url = source_url(repo, path, number, number)
    return format_html(
        '<span class="line"><a class="ln" href="{}">{}</a>{}\n</span>', url, number, html
    )


def _files(rows: Sequence[Mapping[str, Any]], repo: str) -> list[ChangedFile]:
    files = []
    for (path, kind), own in groupby(rows, key=lambda row: (row["relPath"], row["kind"])):
        hunks = list(own)
        texts = [line for row in hunks for line in row["chunk"].split("\n") if row["chunk"]]
        html = mark_safe("".join(map(_side, texts)))
        url = "" if kind == "deleted" else code_url(repo, path)
        files.append(ChangedFile(path, hunks[0].get("oldPath", ""), kind, url, html))
    return files


def _side(line: str) -> SafeString:
    side = SIDES.get(line[:1], "")
    return format_html('<span class="line {}">{}\n</span>', side, line)
