"""Find which files import a file, and what it imports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from apps.code.callgraph.facts import Import
from apps.code.callgraph.languages import BY_LANGUAGE, rules_for
from apps.code.callgraph.project import Tree, folder_of
from apps.index.models import Root
from apps.index.types import Area, Filters
from apps.lookup.deadline import Deadline
from apps.lookup.marking import marked
from apps.lookup.symbols.call_types import Direction, ImportEdge, Imports, ImportsQuery
from apps.lookup.symbols.callers import FOLDER_FILES, MAX_FILES, stem
from apps.lookup.symbols.collect import collect_symbols
from apps.lookup.symbols.project import PARSE_SECONDS, RootProject
from apps.lookup.symbols.references import MAX_LINE
from apps.lookup.symbols.types import WORD, SymbolQuery, longest_word
from apps.retrieval.overlaps import once, repeated_files
from apps.retrieval.paging import Pager
from apps.retrieval.query import is_inside
from apps.retrieval.repositories import roots_named
from apps.retrieval.scope import narrowed

SEPARATORS = ("/", ".", "::")


@dataclass
class _Found:
    """The edges of one root."""

    imports: list[ImportEdge]
    importers: list[ImportEdge]
    cut: int  # files that may import it beyond MAX_FILES


@marked
def find_imports(
    imports_query: ImportsQuery, deadline: Deadline | None = None, tree: Tree | None = None
) -> Imports:
    """The files that import a file or module, then what it imports. The name is a path, the end of
    a path, or a module as imports write it. The filters are for the files that import it. Imports
    of what is no file of the root are only named, as there are many and they lead nowhere.

    deadline: of the answer that they are for; None: in PARSE_SECONDS
    tree: as of `RootProject`

    Raises InvalidInput CURSOR_INVALID, Conflict INGEST_REQUIRED and CURSOR_EXPIRED, and NotFound
    REPO_NOT_FOUND.
    """
    query = imports_query.symbol
    roots, filters = narrowed(roots_named(query.repositories), query.filters)
    pager = Pager.of("FindImports", imports_query, roots)
    query = replace(query, filters=filters)
    until = deadline or Deadline(PARSE_SECONDS)

    def in_root(root: Root) -> Sequence[_Found]:
        return [_in_root(RootProject(root, until, tree), query, imports_query.direction)]

    every = collect_symbols(roots, in_root)
    own = [edge for of_root in every for edge in of_root.imports]
    # A path may name a file in its outer root only, where an earlier version is.
    own = once(own, repeated_files(roots, Filters(areas=filters.areas))) or own
    importers = [edge for of_root in every for edge in of_root.importers]
    edges = sorted(once(importers, repeated_files(roots, filters)), key=_order)
    edges += [edge for edge in own if edge.target]
    libraries = tuple(dict.fromkeys(edge.module for edge in own if not edge.target))
    missed = sum(of_root.cut for of_root in every) + (0 if deadline else len(until.unread))
    notes = f"Files that may import it, but were not looked at: {missed}." if missed else ""
    shown, page = pager.page(edges, query.limit, _order)
    truncated = page.more or bool(missed or until.unread)
    return Imports(query.name, tuple(shown), truncated, notes, page=page, libraries=libraries)


def _order(each: ImportEdge) -> tuple[str, bool, str, str, int, str, str]:
    place = (each.place.repo, each.place.path, each.line, each.module, each.target)
    return each.kind, each.place.is_last, *place


def _in_root(project: RootProject, query: SymbolQuery, direction: Direction) -> _Found:
    files = _files(project, query.name)
    project.read(files)
    areas = query.filters.areas
    inside = [path for path in files if is_inside(areas, project.root, path)]
    imports = [edge for path in inside for edge in _imports(project, path)]
    imports = [] if direction == "importers" else imports
    paths = () if direction == "imports" else _candidates(project, files, query)
    candidates = [path for path in paths if path not in files]
    project.read(candidates[:MAX_FILES])
    importers = [
        edge
        for path in candidates[:MAX_FILES]
        for edge in _importers(project, path, files, query.name)
    ]
    return _Found(
        _with_text(project, [_within(areas, edge) for edge in imports]),
        _with_text(project, [_within(areas, importer) for importer in importers]),
        max(0, len(candidates) - MAX_FILES),
    )


def _within(areas: Sequence[Area], edge: ImportEdge) -> ImportEdge:
    """The edge without a target that is in none of the areas."""
    return edge if is_inside(areas, edge.place.root, edge.target) else replace(edge, target="")


def _files(project: RootProject, name: str) -> list[str]:
    """The files that a path or a module name means; a folder means its files of Go."""
    plain = name.strip("/").removeprefix("./")
    if project.file(plain):
        return [plain]
    folder = project.tree.folders.get(plain, ())
    if sources := [path for path in folder if path.endswith(".go")]:
        return sources
    paths: list[str] = []
    for path in dict.fromkeys((plain, plain.replace("::", "/"), plain.replace(".", "/"))):
        endings = [path] if "." in path.rpartition("/")[2] else []
        endings += [f"{path}{suffix}" for suffix in SUFFIXES]
        for ending in endings:
            paths += project.tree.ending(ending)
    return list(dict.fromkeys(paths))[:1]


SUFFIXES = (
    *(".py", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".java", ".rs", ".go", ".h", ".hpp"),
    *(".vue", ".svelte", ".astro"),
    *("/__init__.py", "/index.ts", "/index.tsx", "/index.js", "/mod.rs"),
)


def _candidates(project: RootProject, files: Sequence[str], query: SymbolQuery) -> list[str]:
    """The files that may import some files, or a module of this name."""
    words = {stem(path) for path in files}
    words |= {
        folder_of(path).rpartition("/")[2] for path in files if path.endswith((".go", ".java"))
    }
    words |= {name for path in files for name in rules_for(path).other_names(project, path)}
    words |= set(WORD.findall(query.name)[-1:]) if not files else set()
    paths: dict[str, None] = {}
    for word in sorted(words):
        paths |= dict.fromkeys(project.with_word(longest_word(word)))
    # `from . import x` and `import '.'` do not name the file.
    for path in files:
        if path.rpartition("/")[2].partition(".")[0] in FOLDER_FILES:
            paths |= dict.fromkeys(project.tree.folders.get(folder_of(path), ()))
    return sorted(path for path in paths if _passes(project, path, query))


def _passes(project: RootProject, path: str, query: SymbolQuery) -> bool:
    language = project.language(path)
    return language in BY_LANGUAGE and query.takes(project.root, path, language)


def _written(project: RootProject, path: str) -> Iterator[tuple[Import, Sequence[Import]]]:
    """The imports of a file as they are written, each with the facts it has in the file: Python's
    `import a.b` imports `a.b`, and also `a`, the name that it binds.
    """
    bound: Import | None = None
    imports = [imported for imported in project.known(path).imports if imported.module]
    for imported, after in zip_longest(imports, imports[1:]):
        if after and not after.name and _binds_head(imported, after):
            bound = imported
        else:
            yield imported, (bound, imported) if bound else (imported,)
            bound = None


def _binds_head(each: Import, after: Import) -> bool:
    is_module = each.name == each.module and not each.member
    return is_module and each.row == after.row and after.module.startswith(f"{each.module}.")


def imported_paths(project: RootProject, path: str) -> Iterator[Sequence[str]]:
    """Of each import of a file, the files of the repository that it may mean, best first."""
    rules = rules_for(path)
    for imported, _ in _written(project, path):
        yield rules.import_paths(project, path, imported)


def _imports(project: RootProject, path: str) -> Iterator[ImportEdge]:
    rules = rules_for(path)
    for imported, _ in _written(project, path):
        targets = rules.import_paths(project, path, imported)
        yield _edge(project, path, imported, "imports", targets[0] if targets else "")


def _importers(
    project: RootProject, path: str, files: Sequence[str], name: str
) -> Iterator[ImportEdge]:
    rules, wanted = rules_for(path), set(files)
    for imported, parts in _written(project, path):
        if not files:
            if imported.module == name or imported.module.startswith(
                tuple(name + s for s in SEPARATORS)
            ):
                yield _edge(project, path, imported, "imported by", "")
            continue
        targets = {file for part in parts for file in rules.import_paths(project, path, part)}
        if targets := targets & wanted:
            yield _edge(project, path, imported, "imported by", min(targets))


def _edge(project: RootProject, path: str, each: Import, kind: str, target: str) -> ImportEdge:
    member = each.member.removeprefix("mod ")
    names = () if member in ("", each.module) else (member,)
    return ImportEdge(project.place(path), each.row + 1, "", kind, each.module, names, target)  # type: ignore[arg-type]


def _with_text(project: RootProject, edges: Sequence[ImportEdge]) -> list[ImportEdge]:
    """The edges with the text of their lines, one for each line and target."""
    lines = project.lines_of({edge.place.path for edge in edges})
    merged: dict[tuple[str, int, str, str], ImportEdge] = {}
    for edge in edges:
        text, row = lines.get(edge.place.path, ()), edge.line - 1
        line = text[row][:MAX_LINE] if row < len(text) else ""
        key = (edge.place.path, edge.line, edge.module, edge.target)
        known = merged.get(key)
        names = tuple(dict.fromkeys([*(known.names if known else ()), *edge.names]))
        merged[key] = replace(edge, text=line, names=names)
    return list(merged.values())
