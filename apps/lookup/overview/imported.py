"""The files of a repository that most of its files import."""

from collections import Counter
from collections.abc import Set
from typing import NamedTuple

import re2

from apps.code.callgraph.languages import BY_LANGUAGE
from apps.code.paths import descriptive_name
from apps.core.values.slices import slices
from apps.index.types import StoredSymbol
from apps.lookup.ingested import known_outline
from apps.lookup.overview.sizes import is_aside
from apps.lookup.relations.types import Relation, Relations, line_at
from apps.lookup.symbols.definitions import MINOR, OUTLINE_ONLY
from apps.lookup.symbols.imports import imported_paths
from apps.lookup.symbols.outline import outermost
from apps.lookup.symbols.project import FILES_AT_ONCE, RootProject, root_files
from apps.retrieval.repositories import repo_id

# Files whose imports are read, and rows. A file of the rows is imported by so many others.
MAX_FILES, MAX_ROWS, LEAST = 3_000, 6, 2
NOT_ALL = "Imports were counted in {} of {} files."
_GENERATED = re2.compile(
    r"(?i)(?:_pb2(?:_grpc)?\.pyi?|\.pb\.\w+|[._-]generated\.\w+|\.gen\.\w+|\.min\.js|\.g\.(?:cs|dart))$"
)


_NO_DEFINITIONS = MINOR | OUTLINE_ONLY | {"module", "namespace"}


class FileImports(NamedTuple):
    """What the files of a repository import of it, and what was not read."""

    targets: dict[str, frozenset[str]]  # path → paths that it imports
    note: str = ""


def file_imports(project: RootProject, visible: Set[str]) -> FileImports:
    """What each of the visible files imports, read until the deadline: the note of the result tells
    what is left. Tests, examples and vendored files are left out."""
    live = root_files(project.root).files
    paths = sorted(
        path
        for path in live.keys() & visible
        if live[path].language in BY_LANGUAGE and not is_aside(path)
    )
    targets: dict[str, frozenset[str]] = {}
    counted = 0
    for batch in slices(paths[:MAX_FILES], FILES_AT_ONCE):
        if project.deadline.is_over:
            break
        project.read(batch)
        for path in batch:
            counted += project.facts(path) is not None
            found = {one[0] for one in imported_paths(project, path) if one}
            targets[path] = frozenset(found - {path})
    return FileImports(targets, NOT_ALL.format(counted, len(paths)) if counted < len(paths) else "")


def most_imported(project: RootProject, visible: Set[str]) -> Relations:
    """The files that most files import. Generated ones are no rows."""
    imports = file_imports(project, visible)
    counts: Counter[str] = Counter()
    for paths in imports.targets.values():
        counts.update(paths)
    named = Counter({_of_package(project, path): count for path, count in counts.items()})
    targets = [
        target
        for target, count in named.items()
        if count >= LEAST and not _GENERATED.search(target) and not is_aside(target)
    ]
    targets.sort(key=lambda target: (-named[target], target))
    rows = (_row(project, one, named[one]) for one in targets[:MAX_ROWS])
    return Relations(tuple(rows), imports.note)


def _of_package(project: RootProject, path: str) -> str:
    """The file that stands for an imported one: of a package of Go, that with its name."""
    if not path.endswith(".go"):
        return path
    folder = path.rpartition("/")[0]
    name = f"{folder.rpartition('/')[2] or repo_id(project.root)}.go"
    files = [one for one in project.tree.folders.get(folder, ()) if one.endswith(".go")]
    return min(files, key=lambda one: (not one.endswith(f"/{name}") and one != name, one))


def _row(project: RootProject, path: str, count: int) -> Relation:
    """The definition that a file is named after, or its longest one, or its first line."""
    main = _main_definition(project, path)
    line, name = (main.start_line, main.path) if main else (1, "")
    text = line_at(project.lines(path) or (), line)
    of = f"imported by {count} files"
    return Relation("imported", project.place(path), line, text, name, of)


def _main_definition(project: RootProject, path: str) -> StoredSymbol | None:
    file = project.file(path)
    symbols = known_outline(project.root, file.document) if file else []
    outer = [one for one in outermost(symbols) if one.kind not in _NO_DEFINITIONS]
    stem = _letters(descriptive_name(path))

    def order(one: StoredSymbol) -> tuple[bool, bool, int, int]:
        is_named = _letters(one.name) == stem
        is_private = one.name.startswith("_") or one.name == "init"
        return not is_named, is_private, one.start_line - one.end_line, one.start_line

    return min(outer, key=order, default=None)


def _letters(name: str) -> str:
    """A name without what differs between a file (`retry-policies`) and its class."""
    return name.replace("_", "").replace("-", "").lower().removesuffix("s")
