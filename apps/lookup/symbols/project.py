"""A root as the resolver of the call graph sees it: facts of files are read when it asks."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from uuid import UUID

from apps.code.callgraph.facts import Definition, Facts
from apps.code.callgraph.languages import BY_LANGUAGE
from apps.code.callgraph.project import Tree
from apps.code.callgraph.resolve import Resolver
from apps.code.chunking import lines_of
from apps.code.languages import grammar_of
from apps.code.notebooks import is_notebook_path
from apps.core.values.slices import slices
from apps.index.chunks import stored_texts
from apps.index.models import Root
from apps.index.parsing.finder import SourceText, get_finder
from apps.index.queries import generation_files
from apps.index.symbols import definitions_of, files_with_identifier
from apps.index.types import Filters
from apps.lookup.deadline import Deadline
from apps.lookup.ingested import ingested_lines
from apps.lookup.symbols.types import Place
from apps.retrieval.query import fits

# Seconds in which one query may parse files that it has not met before.
PARSE_SECONDS = 3.0
# Files that are parsed, and whose lines are read, in one call.
FILES_AT_ONCE, TEXTS_AT_ONCE = 8, 40
# Lines of a file. Longer ones are generated.
MAX_LINES = 30_000
# Facts in memory, by the content of a file: definitions, bindings, imports and calls together.
MAX_CACHED_FACTS = 3_000_000


Key = tuple[str, int]  # path, and index of a definition in its facts


@dataclass(frozen=True, slots=True)
class LiveFile:
    """An ingested file."""

    document: str  # SourceFile.document
    path: str
    language: str
    sha256: str
    size: int  # bytes


@dataclass
class RootFiles:
    """The live files of a root."""

    files: dict[str, LiveFile]  # by path, sorted

    @cached_property
    def tree(self) -> Tree:
        return Tree(list(self.files))


_known: dict[UUID, tuple[int, RootFiles]] = {}


def root_files(root: Root) -> RootFiles:
    """The live files of the generation of the object `root`. Cached for the newest one."""
    generation, known = _known.get(root.id, (0, None))
    if known is None or generation != root.generation:
        is_later = known is not None and generation < root.generation
        files = _files(root, generation, known.files) if known and is_later else _files(root)
        known = RootFiles(files)
        _known[root.id] = root.generation, known
    return known


def _files(
    root: Root, since: int = 0, earlier: Mapping[str, LiveFile] = MappingProxyType({})
) -> dict[str, LiveFile]:
    """Return the ingested files by path. `earlier`: those of the generation `since`, of which no
    row is read again, unless some were removed meanwhile."""
    files = dict(earlier)
    rows = generation_files(root).filter(since__gt=since).order_by()
    columns = ("skip_reason", "document", "path", "language", "sha256", "size")
    for reason, document, path, *others in rows.values_list(*columns).iterator():
        if reason:
            files.pop(path, None)
        else:
            files[path] = LiveFile(str(document), path, *others)
    if since and len(files) != root.files:
        return _files(root)
    return dict(sorted(files.items()))


def files_of(root: Root, filters: Filters) -> list[LiveFile]:
    """The ingested files of a root that pass the filters."""
    files = root_files(root).files.values()
    return [one for one in files if fits(filters, root, one.path, one.language)]


def place_of(root: Root, path: str) -> Place:
    """A file of a root, with its language if it is live."""
    file = root_files(root).files.get(path)
    return Place(root, path, file.language if file else "")


def texts_of_live(root: Root, files: Iterable[LiveFile]) -> dict[str, str]:
    """The texts of live files of a root by document, as `ingested_lines` finds them: their rows are
    read only if texts are missing. A line may end with "\\r\\n"."""
    files = list(files)
    stored = stored_texts({file.sha256 for file in files})
    texts = {file.document: stored[file.sha256] for file in files if file.sha256 in stored}
    missing = [(root, file.document) for file in files if file.document not in texts]
    for document, lines in ingested_lines(missing).items() if missing else ():
        texts[document] = "\n".join(lines)
    return texts


class _FactsCache:
    """The facts of the files used last. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = size
        self._lock = threading.Lock()
        self._facts: OrderedDict[tuple[str, str], Facts] = OrderedDict()

    def get(self, key: tuple[str, str]) -> Facts | None:
        with self._lock:
            facts = self._facts.get(key)
            if facts is not None:
                self._facts.move_to_end(key)
            return facts

    def put(self, key: tuple[str, str], facts: Facts) -> None:
        with self._lock:
            if key in self._facts:
                return
            self._facts[key] = facts
            self._left -= _size(facts)
            while self._left < 0 and self._facts:
                self._left += _size(self._facts.popitem(last=False)[1])

    def clear(self) -> None:
        with self._lock:
            self._facts.clear()
            self._left = self._size


def has_rules(path: str, language: str) -> bool:
    """Whether calls in a file are known."""
    return language in BY_LANGUAGE and (language == "python" or not is_notebook_path(path))


def _size(facts: Facts) -> int:
    return len(facts.definitions) + len(facts.bindings) + len(facts.imports) + len(facts.calls) + 10


_cache = _FactsCache(MAX_CACHED_FACTS)
reset_facts = _cache.clear


class RootProject:
    """One root during one query (`apps.code.callgraph.project.Project`).

    Facts come from memory, or from parse processes until the deadline.

    tree: what imports may mean; None: the live files
    """

    def __init__(self, root: Root, deadline: Deadline, tree: Tree | None = None) -> None:
        self.root = root
        self._tree = tree
        self.deadline = deadline
        self._files = root_files(root)
        self._read: dict[str, Facts | None] = {}
        self._defining: dict[str, Sequence[str]] = {}
        self._texts: dict[str, str | None] = {}

    @property
    def tree(self) -> Tree:
        return self._tree or self._files.tree

    def file(self, path: str) -> LiveFile | None:
        return self._files.files.get(path)

    def language(self, path: str) -> str:
        """The language of a file; "" if it is not live, or has none."""
        file = self.file(path)
        return file.language if file else ""

    def place(self, path: str) -> Place:
        return place_of(self.root, path)

    def facts(self, path: str) -> Facts | None:
        if path not in self._read:
            self.read([path])
        return self._read.get(path)

    @cached_property
    def resolver(self) -> Resolver:
        return Resolver(self)

    def known(self, path: str) -> Facts:
        """The facts of a file; empty if it has none."""
        return self.facts(path) or Facts()

    def definition(self, key: Key) -> Definition:
        return self.known(key[0]).definitions[key[1]]

    def read(self, paths: Iterable[str]) -> None:
        """Read the facts of several files at once."""
        wanted: list[str] = []
        for path in dict.fromkeys(paths):
            file = self.file(path)
            if path in self._read or file is None or not has_rules(path, file.language):
                continue
            facts = _cache.get((file.sha256, file.language))
            if facts is None:
                wanted.append(path)
            else:
                self._read[path] = facts
        for batch in self._in_time(slices(wanted, FILES_AT_ONCE)):
            self._parse(batch)

    def _parse(self, paths: Sequence[str]) -> None:
        texts = [
            SourceText(path, grammar_of(self.language(path)), lines)
            for path, lines in self.lines_of(paths).items()
            if len(lines) <= MAX_LINES
        ]
        self._read |= dict.fromkeys(paths)
        results = get_finder().facts(texts, self.deadline.left)
        for text, facts in zip(texts, results, strict=True):
            self._read[text.path] = facts
            file = self._files.files[text.path]
            if facts is not None:
                _cache.put((file.sha256, file.language), facts)
            elif self.deadline.is_over:
                self.deadline.leave_out(self.root, [text.path])

    def defining(self, name: str) -> Sequence[str]:
        if name not in self._defining:
            symbols = definitions_of(self.root, name)
            paths = dict.fromkeys(one.file_path for one in symbols if one.name == name)
            self._defining[name] = list(paths)
        return self._defining[name]

    def with_word(self, word: str) -> Iterable[str]:
        """The files with an identifier, by path."""
        return files_with_identifier(self.root, word).values()

    def text(self, path: str) -> str | None:
        if path not in self._texts:
            lines = self.lines(path)
            self._texts[path] = None if lines is None else "\n".join(lines)
        return self._texts[path]

    def lines(self, path: str) -> Sequence[str] | None:
        """The lines of a file as they were ingested; None if they are not available."""
        return self.lines_of([path]).get(path)

    def lines_of(self, paths: Iterable[str]) -> dict[str, Sequence[str]]:
        """The lines of several files, by path."""
        return {path: lines_of(text) for path, text in self.texts_of(paths).items()}

    def texts_of(self, paths: Iterable[str]) -> dict[str, str]:
        """The texts of several files, by path. A line may end with "\\r\\n"."""
        files = {path: file for path in paths if (file := self.file(path))}
        texts = texts_of_live(self.root, files.values())
        return {
            path: texts[file.document] for path, file in files.items() if file.document in texts
        }

    def lines_in_time(self, paths: Iterable[str]) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield paths and lines of files until the deadline."""
        for batch in self._in_time(slices(list(paths), TEXTS_AT_ONCE)):
            yield from self.lines_of(batch).items()

    def in_time(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield paths until the deadline; those that are left count as not read."""
        return (path for (path,) in self._in_time((path,) for path in paths))

    def _in_time(self, batches: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        for batch in batches:
            if self.deadline.is_over:
                self.deadline.leave_out(self.root, batch)
            else:
                yield batch
