"""The map of a repository: its folders as tiles, and the imports between them as a graph."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import commonpath, dirname
from typing import NamedTuple
from urllib.parse import urlencode

from apps.browse.front_page import LanguageSpan, language_bar
from apps.browse.graph import Drawing, Drawn, drawing_of
from apps.browse.lines import code_url, source_url
from apps.core.drawing.layered import Box
from apps.core.drawing.sizes import treemap
from apps.index.models import Root
from apps.index.types import Filters
from apps.lookup.deadline import Deadline
from apps.lookup.overview.imported import file_imports
from apps.lookup.overview.overview import languages_by_size
from apps.lookup.overview.sizes import is_code
from apps.lookup.symbols.project import LiveFile, RootProject, files_of
from apps.retrieval.repositories import repo_id

VIEW = "map"
IMPORTS_URL = "/ui/code/imports"
# The treemap, in the units of its picture.
WIDTH, HEIGHT, HEAD = 960, 480, 20
MAX_TILES, MAX_INSIDE = 40, 40
LEAST_WIDTH, LEAST_HEIGHT = 44, 18  # of a tile with a label
CHARACTER, MAX_LABEL = 6.6, 34
# The graph: folders; if they are few, the files with most imports instead.
MAX_UNITS, FEW_FOLDERS, MAX_ARCS, MAX_LISTED = 40, 12, 120, 200
# Places that an answer cites, and their characters: each link on the page has them.
MAX_CITED, MAX_CITED_CHARS = 40, 2_000
# Seconds in which files are read for their imports.
SECONDS = 5.0


class Cited(NamedTuple):
    """Lines that an answer cites. lines: `12-40`, or "" """

    path: str
    lines: str

    @classmethod
    def read(cls, texts: Sequence[str]) -> list["Cited"]:
        """Of `path:12-40`; a path without lines is a file."""
        found, room = [], MAX_CITED_CHARS
        for text in texts[:MAX_CITED]:
            room -= len(text)
            if room < 0:
                break
            path, _, lines = text.rpartition(":")
            is_lines = path and lines.replace("-", "", 1).isdecimal()
            found.append(cls(path, lines) if is_lines else cls(text, ""))
        return found

    @property
    def text(self) -> str:
        return f"{self.path}:{self.lines}" if self.lines else self.path

    @property
    def label(self) -> str:
        return f"{self.path}:{self.lines.replace('-', '–')}" if self.lines else self.path


def map_url(repo: str, folder: str = "", cited: Collection[Cited] = ()) -> str:
    url = source_url(repo, folder, None, None, view=VIEW)
    more = urlencode([("cited", one.text) for one in cited])
    return f"{url}&{more}" if more else url


class Tile(NamedTuple):
    """A file, or a folder, in the treemap.

    label: "" if there is no room. color: number of the language, from 0; "none" for others
    cited: places in it that an answer cites
    """

    box: Box
    label: str
    title: str
    url: str
    color: str
    cited: int
    is_inside: bool = False

    @property
    def text_y(self) -> int:
        return self.box.y + 14


class MapRow(NamedTuple):
    """A file or folder in the list beside the map."""

    name: str
    url: str
    is_folder: bool
    files: int
    size: int
    cited: int


@dataclass(frozen=True)
class MapView:
    """What the page shows.

    cited: the cited places with their URLs
    more: entries that have no tile
    """

    folder: str
    tiles: Sequence[Tile]
    rows: Sequence[MapRow]
    more: int
    languages: Sequence[LanguageSpan]
    cited: Sequence[tuple[str, str]]
    imports_url: str
    up_url: str
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True)
class _Node:
    """An entry of a folder. name: below that folder; items: below this one, or itself for a file"""

    name: str
    path: str
    items: Sequence[LiveFile]
    is_folder: bool
    size: int

    @property
    def language(self) -> str:
        sizes: Counter[str] = Counter()
        for item in self.items:
            sizes[item.language] += item.size
        return sizes.most_common(1)[0][0]


@dataclass(frozen=True)
class _Map:
    """What the tiles of a map share. languages: by their colours"""

    repo: str
    cited: Sequence[Cited]
    languages: Sequence[str]

    def url(self, node: _Node) -> str:
        """Of a folder its map, of a file its cited lines."""
        if node.is_folder:
            return map_url(self.repo, node.path, self.cited)
        lines = [one.lines for one in self.cited if one.path == node.path]
        return source_url(self.repo, node.path, None, None, lines=next(iter(lines), ""))

    def count(self, path: str) -> int:
        """The cited places in a file or folder; "" is the repository."""
        inside = f"{path}/" if path else ""
        return sum(one.path == path or one.path.startswith(inside) for one in self.cited)

    def tile(self, node: _Node, box: Box, *, is_inside: bool) -> Tile:
        has_label = box.width >= LEAST_WIDTH and box.height >= LEAST_HEIGHT
        room = min(MAX_LABEL, int((box.width - 12) / CHARACTER))
        label = node.name if len(node.name) <= room else f"{node.name[: max(1, room - 1)]}…"
        language, cited = node.language, self.count(node.path)
        count = len(node.items)
        facts = f"{count:,} file{'' if count == 1 else 's'}, " if node.is_folder else ""
        title = f"{node.path}: {facts}{language or 'text'}{_mark(cited)}"
        known = language in self.languages
        color = str(self.languages.index(language)) if known else "none"
        return Tile(box, label if has_label else "", title, self.url(node), color, cited, is_inside)

    def tiles(self, folder: _Node, nodes: Sequence[_Node], box: Box, most: int) -> Iterator[Tile]:
        """Tiles of the largest entries of a folder, and one of the others together."""
        sized: list[tuple[int, _Node | None]] = [(one.size, _inmost(one)) for one in nodes[:most]]
        if others := nodes[most:]:
            sized.append((sum(one.size for one in others), None))
        sized.sort(key=lambda pair: -pair[0])
        is_inside = box.width < WIDTH
        places = treemap([size for size, _ in sized], box)
        for (_, node), place in zip(sized, places, strict=True):
            if node is None:
                rest = replace(folder, name=f"{len(others):,} others")
                tile = self.tile(rest, place, is_inside=is_inside)
                yield tile._replace(title=rest.name, url=code_url(self.repo, folder.path))
                continue
            yield self.tile(node, place, is_inside=is_inside)
            if node.is_folder and not is_inside:
                yield from self.inner(node, place)

    def inner(self, node: _Node, box: Box) -> Iterator[Tile]:
        """The tiles inside of that of a folder, below its label."""
        room = Box(box.x + 3, box.y + HEAD, box.width - 6, box.height - HEAD - 3)
        if room.width >= LEAST_WIDTH and room.height >= LEAST_HEIGHT:
            yield from self.tiles(node, _nodes(node.items, node.path), room, MAX_INSIDE)


def _mark(cited: int) -> str:
    return f", cited {cited} time{'' if cited == 1 else 's'}" if cited else ""


def map_view(root: Root, folder: str, cited: Sequence[Cited]) -> MapView:
    """The map of a folder; "" is the repository itself."""
    repo = repo_id(root)
    items = _inside(files_of(root, Filters()), folder)
    nodes = _nodes(items, folder)
    on_map = _Map(repo, cited, [language.name for language in languages_by_size(root)])
    whole = _Node("", folder, items, is_folder=True, size=sum(item.size for item in items))
    query = [("repo", repo), ("path", folder), *(("cited", one.text) for one in cited)]
    return MapView(
        folder,
        list(on_map.tiles(whole, nodes, Box(0, 0, WIDTH, HEIGHT), MAX_TILES)),
        [
            MapRow(n.name, on_map.url(n), n.is_folder, len(n.items), n.size, on_map.count(n.path))
            for n in map(_inmost, nodes[:MAX_LISTED])
        ],
        max(0, len(nodes) - MAX_TILES),
        language_bar(root),
        [(one.label, source_url(repo, one.path, None, None, lines=one.lines)) for one in cited],
        f"{IMPORTS_URL}?{urlencode(query)}",
        map_url(repo, folder.rpartition("/")[0], cited) if folder else "",
    )


def _inside(files: Sequence[LiveFile], folder: str) -> Sequence[LiveFile]:
    """The files below a folder, by their sizes; those of code if it has any, as data is large."""
    start = f"{folder}/" if folder else ""
    inside = [file for file in files if file.path.startswith(start) and file.size]
    return list(filter(is_code, inside)) or inside


def _nodes(items: Sequence[LiveFile], folder: str) -> list[_Node]:
    """The entries of a folder, largest first."""
    start = len(folder) + 1 if folder else 0
    below: dict[str, list[LiveFile]] = defaultdict(list)
    files: set[str] = set()
    for item in items:
        name, slash, _ = item.path[start:].partition("/")
        path = item.path[:start] + name
        below[path].append(item)
        if not slash:
            files.add(path)
    nodes = [
        _Node(
            path[start:] if path in files else f"{path[start:]}/",
            path,
            own,
            path not in files,
            sum(item.size for item in own),
        )
        for path, own in below.items()
    ]
    return sorted(nodes, key=lambda node: (-node.size, node.path))


def _inmost(node: _Node) -> _Node:
    """The folder that has all files: of a folder with nothing but another folder, that one."""
    if not node.is_folder:
        return node
    folders = [f"{dirname(item.path)}/" for item in node.items]
    path = commonpath([min(folders), max(folders)])
    return replace(node, name=f"{node.name[:-1]}{path[len(node.path) :]}/", path=path)


# --- imports --------------------------------------------------------------------------------------


class ImportRow(NamedTuple):
    """start imports end, in so many files."""

    start: Drawn
    end: Drawn
    files: int


@dataclass(frozen=True)
class ImportsView:
    """drawing: None without imports. left_out: rows that are not in the picture or not listed"""

    drawing: Drawing | None
    rows: Sequence[ImportRow]
    left_out: int
    note: str


def imports_view(root: Root, folder: str, cited: Sequence[Cited]) -> ImportsView:
    """The imports between the folders, or the files, of a folder."""
    files = {file.path for file in files_of(root, Filters())}
    imports = file_imports(RootProject(root, Deadline(SECONDS)), files)
    start = f"{folder}/" if folder else ""
    known = imports.targets.keys() | set().union(*imports.targets.values())
    unit_of = units([path for path in known if path.startswith(start)], folder)
    counts: Counter[tuple[str, str]] = Counter()
    for path, targets in imports.targets.items():
        ends = {unit_of[target] for target in targets if target in unit_of}
        if path in unit_of:
            counts.update((unit_of[path], end) for end in ends if end != unit_of[path])
    on_map = _Map(repo_id(root), cited, ())
    pairs = sorted(counts, key=lambda pair: (-counts[pair], pair))
    degrees = Counter(unit for pair in pairs for unit in pair)
    largest = dict(degrees.most_common(MAX_UNITS))
    shown = [pair for pair in pairs if pair[0] in largest and pair[1] in largest][:MAX_ARCS]
    listed = pairs[:MAX_LISTED]
    drawn = {
        unit: _drawn(unit, folder, on_map, is_file=unit in files)
        for unit in sorted({unit for pair in (*shown, *listed) for unit in pair})
    }
    nodes = {unit: one for unit, one in drawn.items() if any(unit in pair for pair in shown)}
    return ImportsView(
        drawing_of(nodes, dict.fromkeys(shown, True)) if shown else None,
        [ImportRow(drawn[a], drawn[b], counts[a, b]) for a, b in listed],
        len(pairs) - len(shown),
        imports.note,
    )


def _drawn(unit: str, folder: str, on_map: _Map, *, is_file: bool) -> Drawn:
    """A unit, by its path below the folder of the map; a folder has a slash at its end."""
    path = unit.rstrip("/")
    label = unit[len(folder) + 1 :] if folder else unit.lstrip("/")
    cited = on_map.count(path)
    url = code_url(on_map.repo, path) if is_file else map_url(on_map.repo, path, on_map.cited)
    title = f"{path or on_map.repo}{_mark(cited)}"
    return Drawn(label or "(own files)", title, url, is_marked=bool(cited))


def units(paths: Collection[str], folder: str) -> dict[str, str]:
    """Each path with the folder that stands for it in the graph, with a slash at its end; or with
    itself, if there are few folders. The folders with most files are opened first, until there are
    MAX_UNITS."""
    groups: dict[str, list[str]] = {f"{folder}/" if folder else "/": sorted(paths)}
    closed: set[str] = set()
    while opened := max(
        groups.keys() - closed, key=lambda unit: (len(groups[unit]), unit), default=""
    ):
        inner = _opened(groups[opened], opened)
        closed.add(opened)
        if len(groups) - 1 + len(inner) <= MAX_UNITS:
            del groups[opened]
            groups |= inner
    if len(groups) <= FEW_FOLDERS:
        return {path: path for path in paths}
    return {path: unit for unit, own in groups.items() for path in own}


def _opened(paths: Sequence[str], unit: str) -> Mapping[str, list[str]]:
    """The folders in a folder, and itself for its own files."""
    start = len(unit.lstrip("/"))
    inner: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        name, slash, _ = path[start:].partition("/")
        inner[f"{path[:start]}{name}/" if slash else unit].append(path)
    return inner
