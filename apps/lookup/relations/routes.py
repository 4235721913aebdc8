"""Find the routes of web frameworks, and what serves them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import re2

from apps.code.callgraph.project import join
from apps.code.paths import kinds
from apps.lookup.deadline import Deadline
from apps.lookup.relations.route_mounts import Mounts
from apps.lookup.relations.route_patterns import HINTS, TextRoute, joined, routes_in
from apps.lookup.relations.types import ASIDE, Relation, Relations, Scope, one_line
from apps.lookup.symbols.project import RootProject

# Files that are read, and routes of one repository.
MAX_FILES, MAX_ROUTES = 400, 5_000
BY_TEXT = "Routes are read from the text of files; what is put before them may not all be known."
NOT_ALL = "Not all files that may have routes were read."
_NEXT_FILES = ("next.config.js", "next.config.mjs")
_NEXT = re2.compile(
    r"(?:^|.*/)(?:app/(?P<app>.*)/(?:route|page)|pages/(?P<pages>.+))\.[cm]?[jt]sx?"
)
# A part of a route that stands for any text: `<int:id>`, `{id}`, `:id`, `*`, `(?P<id>\d+)`, `[id]`.
_ANY = re2.compile(r"[<{:*(\[$]")
_SPLIT = re2.compile(r"/+")


def find_routes(scope: Scope, path: str, method: str, deadline: Deadline) -> Relations:
    """The routes that frameworks declare and that serve the path of a request: whole matches first,
    then those whose end matches, as a prefix may be given elsewhere; last those of tests, examples
    and docstrings. `of` is the route, `symbol` the name of what serves it. method: "" for any

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    searches: list[_Search] = []
    quoted: set[Relation] = set()  # examples in docstrings
    wanted = segments(path)

    def in_root(project: RootProject, scope: Scope) -> list[Relation]:
        searches.append(_Search(project, scope, quoted))
        return list(searches[-1].rows())[:MAX_ROUTES]

    def order(rated: tuple[tuple[int, int], Relation]) -> tuple[Any, ...]:
        rating, row = rated
        is_aside = row in quoted or kinds(row.place.path) & ASIDE
        return bool(is_aside), *rating, row.place.path, row.line

    rows = scope.collect(deadline, in_root)
    rows = [row for row in rows if not method or _has_method(row, method)]
    rated = [(rating, row) for row in rows if (rating := _rating(row, wanted))]
    rows = [row for _, row in sorted(rated, key=order)]
    rows = [row if row in quoted else _settled(row, wanted) for row in rows]
    notes = [BY_TEXT, NOT_ALL if any(one.is_cut for one in searches) else ""]
    return Relations(tuple(dict.fromkeys(rows))[: scope.limit], " ".join(filter(None, notes)))


def _has_method(row: Relation, method: str) -> bool:
    first, _, rest = row.of.partition(" ")
    return not rest or first == method.upper()


def _rating(row: Relation, wanted: Sequence[str]) -> tuple[int, int] | None:
    """How well a route fits, smaller is better; None if it does not."""
    parts = segments(row.of.rpartition(" ")[2])
    if not parts and wanted:
        return None
    count = len(parts)
    same = sum(a == b for a, b in zip(parts[::-1], wanted[::-1], strict=False))
    fits = count <= len(wanted) and all(
        part == given or _ANY.search(part)
        for part, given in zip(parts[::-1], wanted[::-1], strict=False)
    )
    if not fits or (wanted and not same):
        return None
    return len(wanted) - count, -same


def _settled(row: Relation, wanted: Sequence[str]) -> Relation:
    """A route that is the whole path is proven."""
    is_whole = len(segments(row.of.rpartition(" ")[2])) == len(wanted)
    return replace(row, certainty="proven" if is_whole else "possible")


def segments(path: str) -> list[str]:
    """The parts of a path or a route, without query and anchors."""
    plain = path.partition("?")[0] if not path.startswith("^") and "(?" not in path else path
    plain = plain.removeprefix("^").removesuffix("$").removesuffix("/?")
    return [part for part in _SPLIT.split(plain) if part]


class _Search:
    """The search in one root."""

    def __init__(self, project: RootProject, scope: Scope, quoted: set[Relation]) -> None:
        self.project, self.quoted = project, quoted
        self.visible = scope.paths(project.root)
        self.is_cut = False
        self.mounts = Mounts(project)

    def rows(self) -> Iterator[Relation]:
        paths = self._candidates()
        self.is_cut = self.is_cut or len(paths) > MAX_FILES
        texts = dict(self.project.lines_in_time(paths[:MAX_FILES]))
        routes: list[tuple[str, TextRoute]] = []
        for path in self.project.in_time(texts):
            found = routes_in(path, self.project.language(path), texts[path])
            routes += [(path, route) for route in found if "include" not in route.handler]
        # Last, as imports are followed through files that may have to be parsed.
        for path in self.project.in_time(texts):
            self.mounts.read(path, self.project.language(path), texts[path])
        for path, route in routes:
            yield from self._of_prefixes(path, route, texts[path])
        yield from self._by_file_name()

    def _candidates(self) -> list[str]:
        found: dict[str, None] = {}
        for hint in HINTS:
            if self.project.deadline.is_over:
                self.is_cut = True  # of how many files is unknown
                break
            found |= dict.fromkeys(self.project.with_word(hint))
        paths = [path for path in found if path in self.visible and "prose" not in kinds(path)]
        return sorted(paths, key=lambda path: bool(kinds(path) & ASIDE))

    def _of_prefixes(self, path: str, route: TextRoute, lines: Sequence[str]) -> Iterator[Relation]:
        place, text = self.project.place(path), one_line(lines[route.row])
        for prefix in self.mounts.before(path, route.router, route.row):
            shown = "/" + joined(prefix, route.path).removeprefix("^").lstrip("/")
            of = f"{route.method} {shown}".strip()
            row = Relation("route", place, route.row + 1, text, route.handler, of, "possible")
            if route.is_quoted:
                self.quoted.add(row)
            yield row

    def _by_file_name(self) -> Iterator[Relation]:
        """Files of Next.js, whose path is the route."""
        by_name = self.project.tree.by_name
        if not any(self.visible & {*by_name.get(name, ())} for name in _NEXT_FILES):
            return
        named = {path: match for path in sorted(self.visible) if (match := _NEXT.fullmatch(path))}
        for path, lines in self.project.lines_in_time(named):
            match = named[path]
            inner = match["app"] if match["app"] is not None else match["pages"]
            parts = [part for part in inner.split("/") if not part.startswith(("(", "_"))]
            parts = [part for part in parts if part != "index"]
            place, text = self.project.place(path), one_line(lines[0]) if lines else ""
            yield Relation("route", place, 1, text, "", "/" + join("", "/".join(parts)), "possible")
