"""What the pages of the code browser show: breadcrumbs, the tree of files, the outline."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote, urlencode

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from apps.browse.lines import code_url, source_url
from apps.browse.source import SourceView
from apps.core.config import config
from apps.core.errors import CodeinfoError, NotFound
from apps.index import queries
from apps.index.models import Root
from apps.index.paths import MappedPath
from apps.lookup.ingested import live_file
from apps.lookup.symbols import OutlineQuery, file_outline
from apps.lookup.symbols.types import OutlineItem, flattened
from apps.lookup.texts.folders import Entry, entries_of, folders_of
from apps.retrieval.repositories import find_root, repo_id

# Entries of a folder that are shown at once, files that a search for a path shows.
PAGE_SIZE = 500
MAX_FOUND_FILES = 100
# Folders that the tree opens on the way to a file, and that the breadcrumbs name.
MAX_OPEN_FOLDERS = 30
FIRST_CRUMBS, LAST_CRUMBS = 2, 3
MAX_OUTLINE_ITEMS = 1_000
MAX_DEPTH = 4
TREE_URL = "/ui/code/tree"
# Name on the page and scheme of an editor.
EDITORS = {"vscode": ("VS Code", "vscode"), "cursor": ("Cursor", "cursor")}


class Place(NamedTuple):
    """What a URL of the code browser names."""

    root: Root
    path: str  # of a file or folder, "" for the repository itself
    is_file: bool


def place_of(where: str) -> Place:
    """Read `<repository>/<path>`. The id of a repository may contain slashes: the longest that fits
    is meant.

    Raises NotFound REPO_NOT_FOUND or FILE_NOT_FOUND.
    """
    roots = queries.published_roots()
    ids = sorted(map(repo_id, roots), key=len, reverse=True)
    repo = next((known for known in ids if where == known or where.startswith(f"{known}/")), None)
    if repo is None:
        repo = where.partition("/")[0]
    return file_or_folder(find_root(repo, roots), where[len(repo) + 1 :])


def file_or_folder(root: Root, path: str) -> Place:
    """The live file with this path, else the folder. Raises NotFound FILE_NOT_FOUND."""
    folder = path.strip("/")
    if not folder:
        return Place(root, "", is_file=False)
    try:
        return Place(root, live_file(root, path).path, is_file=True)
    except NotFound:
        if not entries_of(root, folder):
            raise
        return Place(root, folder, is_file=False)


class Crumb(NamedTuple):
    """A part of a path. url: "" for the page itself, and where folders are left out."""

    name: str
    url: str


def crumbs_of(repo: str, path: str) -> list[Crumb]:
    """Breadcrumbs to a file or folder. Of a deep path the middle is left out."""
    names = path.split("/") if path else []
    crumbs = [Crumb(repo, code_url(repo))]
    crumbs += [
        Crumb(name, code_url(repo, "/".join(names[: index + 1])))
        for index, name in enumerate(names)
    ]
    crumbs[-1] = crumbs[-1]._replace(url="")
    if len(crumbs) > FIRST_CRUMBS + LAST_CRUMBS + 1:
        crumbs[FIRST_CRUMBS:-LAST_CRUMBS] = [Crumb("…", "")]
    return crumbs


@dataclass(frozen=True)
class Branch:
    """Entries of a folder, beginning with one page."""

    repo: str
    folder: str
    entries: Sequence["Twig"]
    more: int = 0  # entries after these
    start: int = 0  # entries before these

    @property
    def next_start(self) -> int:
        return self.start + PAGE_SIZE

    @property
    def more_url(self) -> str:
        return tree_url(self.repo, self.folder, after=self.next_start)

    @property
    def page_url(self) -> str:
        """The next entries on the page of the folder."""
        return source_url(self.repo, self.folder, None, None, after=self.next_start)


@dataclass(frozen=True)
class Twig:
    """An entry of a folder, with its own entries if it is open."""

    repo: str
    entry: Entry
    is_current: bool = False
    branch: Branch | None = None

    @property
    def url(self) -> str:
        return code_url(self.repo, self.entry.path)

    @property
    def tree_url(self) -> str:
        return tree_url(self.repo, self.entry.path)


def tree_url(repo: str, folder: str, **more: int) -> str:
    return f"{TREE_URL}?{urlencode({'repo': repo, 'path': folder} | more)}"


def branch_of(root: Root, folder: str, start: int = 0) -> Branch:
    """At most PAGE_SIZE entries of a folder."""
    return _branch(repo_id(root), folder, entries_of(root, folder), start=start)


def tree_of(root: Root, path: str, *, is_file: bool) -> Branch:
    """The tree of a repository, open on the way to a file or folder."""
    folder = path.rpartition("/")[0] if is_file else path
    names = folder.split("/")[:MAX_OPEN_FOLDERS]
    repo = repo_id(root)
    inner: Branch | None = None
    for name, entries in reversed(folders_of(root, "/".join(names))):
        inner = _branch(repo, name, entries, current=path, inner=inner)
    return inner or Branch(repo, "", ())


def _branch(
    repo: str,
    folder: str,
    entries: Sequence[Entry],
    *,
    start: int = 0,
    current: str = "",
    inner: Branch | None = None,
) -> Branch:
    shown = list(entries[start : start + PAGE_SIZE])
    # What is open is shown, however far behind it stands.
    wanted = inner.folder if inner else current
    shown += [entry for entry in entries[start + PAGE_SIZE :] if entry.path == wanted]
    twigs = [
        Twig(
            repo,
            entry,
            is_current=entry.path == current,
            branch=inner if inner and entry.path == inner.folder else None,
        )
        for entry in shown
    ]
    more = max(0, len(entries) - start - PAGE_SIZE)
    return Branch(repo, folder, twigs, more, start)


class OutlineRow(NamedTuple):
    """A definition in the outline of a page."""

    depth: int  # at most MAX_DEPTH
    item: OutlineItem
    url: str
    fragment: str  # for the pane beside an answer; the same anchor inside the window

    # Not templates: to render one for each of a thousand rows takes ten times as long.

    @property
    def option(self) -> str:
        """The row in the list of a narrow page, as HTML."""
        url, fragment, kind, path = map(escape, self._texts)
        return f'<option value="{url}" data-fragment="{fragment}">{kind} {path}</option>'

    @property
    def link(self) -> str:
        """The row in the panel of a wide page, as HTML."""
        url, _, kind, path = map(escape, self._texts)
        first, last, name = self.item.start_line, self.item.end_line, escape(self.item.name)
        return (
            f'<li class="outline__{self.depth}"><a href="{url}" title="{kind} {path}, line {first}"'
            f' data-first="{first}" data-last="{last}" data-symbol="{path}">'
            f'<span class="outline__name truncate">{name}</span>'
            f'<span class="outline__kind">{kind}</span></a></li>'
        )

    @property
    def _texts(self) -> tuple[str, str, str, str]:
        return self.url, self.fragment, self.item.kind, self.item.path


@dataclass(frozen=True)
class Outline:
    """The outline of a page: its rows as HTML, in both forms."""

    count: int = 0
    options: SafeString = SafeString("")
    links: SafeString = SafeString("")
    has_more: bool = False

    def __bool__(self) -> bool:
        return self.count > 0


def outline_of(view: SourceView) -> Outline:
    """The first definitions of the file; none on an error, or of the JSON of a notebook."""
    if view.is_json:
        return Outline()
    try:
        outline = file_outline(OutlineQuery(view.repo, view.path))
    except CodeinfoError:
        return Outline()
    flat = list(islice(flattened(outline.items), MAX_OUTLINE_ITEMS + 1))
    rows = [
        OutlineRow(min(depth, MAX_DEPTH), item, *view.links_to(item.start_line))
        for depth, item in flat[:MAX_OUTLINE_ITEMS]
    ]
    options, links = (
        mark_safe("".join(parts))  # escaped in the rows
        for parts in ((row.option for row in rows), (row.link for row in rows))
    )
    return Outline(len(rows), options, links, len(flat) > MAX_OUTLINE_ITEMS)


class EditorLink(NamedTuple):
    name: str
    url: str  # without a line
    line_url: str  # with `{line}` in place of a line


def editor_link(place: MappedPath) -> EditorLink | None:
    """The link that opens a file in the reader's editor (CODEINFO_EDITOR); None if there is no
    editor, or the path on the host is not known."""
    setting = config().editor
    if setting == "none" or place.warning:
        return None
    path = quote(place.host_path.replace("\\", "/"), safe="/:")
    path = path if path.startswith("/") else f"/{path}"
    if setting in EDITORS:
        name, scheme = EDITORS[setting]
        return EditorLink(name, f"{scheme}://file{path}", f"{scheme}://file{path}:{{line}}")
    url = setting.replace("{path}", path)
    return EditorLink("editor", url.replace("{line}", "1"), url)
