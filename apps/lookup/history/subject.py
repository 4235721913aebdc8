"""What a History is about: a repository, its git, a path in it, and commits."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from apps.code.chunking import decode, lines_of
from apps.code.notebooks import is_notebook_path
from apps.core.errors import InvalidInput, NotFound
from apps.index import queries
from apps.index.models import Root, SourceFile
from apps.index.types import Area, Filters
from apps.ingest.discovery.repository import Repository, find_repository, repository_at
from apps.lookup.git import CommitNotFound, Git, commit_named, opened
from apps.lookup.history.lines import line_numbers
from apps.lookup.history.query import INGEST, HistoryQuery
from apps.lookup.history.visible import OUTSIDE, Visible
from apps.lookup.ingested import lines_of_file, live_file
from apps.lookup.symbols import SymbolQuery, find_definitions
from apps.retrieval.query import invalid, listed
from apps.retrieval.repositories import find_root, repo_id, required_model

NO_INGESTED = "The commit that was ingested is not in the repository: HEAD is shown."
NO_LINES_OF_NOTEBOOKS = "The lines of a notebook are not those of its file: leave them out."


@dataclass(frozen=True)
class Subject:
    """A query with what it names.

    path: "" for the whole root
    span: the lines that are meant, of the ingested text; None for all
    above: path of the root in its work tree; "" or with a slash at its end
    below: path in the root of the work tree, likewise; one of both is ""
    """

    query: HistoryQuery
    root: Root
    git: Git
    visible: Visible
    path: str
    span: tuple[int, int | None] | None
    above: str
    below: str
    notes: list[str] = field(default_factory=list)

    def in_repository(self, path: str) -> str:
        """The path in the work tree, of one in the root."""
        inner = f"{path}/".removeprefix(self.below) if self.below else f"{path}/"
        return f"{self.above}{inner}".strip("/")

    def in_root(self, path: str) -> str:
        """The opposite of `in_repository`."""
        return f"{self.below}{path.removeprefix(self.above)}"

    @property
    def pathspec(self) -> list[str]:
        """The arguments of git that limit it to the path."""
        inside = self.in_repository(self.path)
        return ["--", inside] if inside else []

    @property
    def ingested(self) -> str:
        """The id of the commit that was checked out at the last ingest; "" if it is not known."""
        commit = "" if self.below else self.root.commit
        return commit and self.git.object_id(f"{commit}^{{commit}}")

    def commit(self, name: str) -> str:
        """The id of the commit with this name. Raises CommitNotFound."""
        if name != INGEST:
            return commit_named(self.git, name)
        if commit := self.ingested:
            return commit
        raise CommitNotFound("The commit that was ingested is not known, or not there any more.")

    def text_commit(self) -> str:
        """The commit whose text the lines of a query are compared with: `to`, else the one that
        was ingested. Raises CommitNotFound."""
        if self.query.to:
            return self.commit(self.query.to)
        if not (commit := self.ingested) and self.root.commit and not self.below:
            self.notes.append(NO_INGESTED)
        return commit or self.git.head

    def lines(self) -> list[str]:
        """The lines of the file as they were ingested. Raises NotFound FILE_NOT_FOUND, Unavailable
        TEXT_LOST, and InvalidInput for a notebook."""
        if is_notebook_path(self.path):
            raise invalid(NO_LINES_OF_NOTEBOOKS)
        return lines_of_file(self.root, self._file)

    def numbers_at(self, commit: str, lines: Sequence[str]) -> list[int]:
        """The number that each of the ingested lines has in the text of a commit; 0 for none."""
        blob = self.git.object_id(f"{commit}:{self.in_repository(self.path)}")
        data = self._blob(blob) if blob else b""
        return line_numbers(lines, lines_of(decode(data, self._file.encoding)))

    def span_at(self, commit: str) -> tuple[int, int] | None:
        """The first and the last of the lines that are meant, in the text of a commit; None if it
        has none of them."""
        first, last = self.span or (1, None)
        numbers = [*filter(None, self.numbers_at(commit, self.lines())[first - 1 : last])]
        return (min(numbers), max(numbers)) if numbers else None

    def _blob(self, name: str) -> bytes:
        """The content of an object; nothing of what was a folder then. Raises as `Git.run`."""
        output = self.git.run("cat-file", "--batch", data=f"{name}\n".encode())
        head, _, data = output.partition(b"\n")
        if head.endswith(b" missing"):
            self.git.run("cat-file", "-e", name)  # raises
        return data[:-1] if b" blob " in head else b""

    @property
    def _file(self) -> SourceFile:
        return live_file(self.root, self.path, self.query.areas)


@contextmanager
def subject_of(query: HistoryQuery) -> Iterator[Subject]:
    """Find what a query names. Raises Conflict INGEST_REQUIRED, NotFound (REPO_NOT_FOUND,
    FILE_NOT_FOUND, SYMBOL_NOT_FOUND, NO_HISTORY), InvalidInput FORBIDDEN_PATH, and as `opened`."""
    required_model()
    root = find_root(query.repository)
    notes: list[str] = []
    path, span = query.path, query.lines
    if query.symbol:
        path, span = _of_symbol(query, root, notes)
    elif path:
        path = _known_path(root, path)
    repository = _repository_of(root, path)
    visible = Visible(root, repository, query.areas)
    _check_path(query, root, path, visible)
    above, below = _places(Path(root.path), repository.work_tree)
    with opened(repository) as git:
        yield Subject(query, root, git, visible, path, span, above, below, notes)


@contextmanager
def subject_of_root(root: Root, areas: Sequence[Area]) -> Iterator[Subject]:
    """A whole root, of which `Visible` shows what is in some areas. Raises NotFound NO_HISTORY and
    as `opened`."""
    repository = _repository_of(root, "")
    visible = Visible(root, repository, areas)
    above, below = _places(Path(root.path), repository.work_tree)
    query = HistoryQuery("diff", repo_id(root), areas=tuple(areas))
    with opened(repository) as git:
        yield Subject(query, root, git, visible, "", None, above, below)


def _of_symbol(
    query: HistoryQuery, root: Root, notes: list[str]
) -> tuple[str, tuple[int, int | None]]:
    """The path and the lines of a definition, the best one if there are several."""
    filters = Filters(path=query.path, areas=query.areas)
    wanted = SymbolQuery(query.symbol, (repo_id(root),), filters=filters)
    found = find_definitions(wanted)
    if not found.results:
        where = query.path or repo_id(root)
        raise NotFound(f"{query.symbol} is not defined in {where}.", code="SYMBOL_NOT_FOUND")
    first = found.results[0]
    if len(found.results) > 1 or found.truncated:
        notes.append(f"{query.symbol} has several definitions; a path chooses another one.")
    return first.place.path, (first.start_line, first.end_line)


def _known_path(root: Root, path: str) -> str:
    """The path as the index has it, if it is that of a live file."""
    try:
        return live_file(root, path).path
    except NotFound:
        return path


def _repository_of(root: Root, path: str) -> Repository:
    """The repository of a path: the innermost one that contains it. Raises NotFound NO_HISTORY,
    and Unavailable GIT_FAILED."""
    top, repository = Path(root.path), None
    names = path.split("/")
    try:
        for count in range(len(names) if path and not root.plain_folder else 0, 0, -1):
            folder = top.joinpath(*names[:count])
            if os.path.lexists(folder / ".git") and os.path.realpath(folder) == str(folder):
                repository = repository_at(folder)
                break
        if repository is None and not root.plain_folder:
            repository = find_repository(top)
    except OSError as error:
        message = f"The folder of {repo_id(root)} cannot be read: {error.strerror}."
        raise NotFound(message, code="NO_HISTORY") from error
    if repository is None:
        message = f"{repo_id(root)} was not ingested as a git repository: it has no history."
        raise NotFound(message, code="NO_HISTORY")
    return repository


def _check_path(query: HistoryQuery, root: Root, path: str, visible: Visible) -> None:
    """Raise InvalidInput FORBIDDEN_PATH if a path may not be looked into."""
    if not path:
        own = ("", repo_id(root))
        if query.areas and not any(a.repository in own and not a.path for a in query.areas):
            raise _forbidden(f"Name a path: these may be looked into: {listed(query.areas)}.")
        return
    folder = f"{path}/"
    is_folder = queries.live_files(root).ingested().filter(path__startswith=folder).exists()
    # A file or a folder, if it is not there any more.
    reasons = visible.reasons([folder] if is_folder else [path, folder])
    if OUTSIDE in reasons.values() and reasons.get(path, OUTSIDE) == reasons[folder]:
        text = f"{path} may not be looked into here; these may: {listed(query.areas)}"
        raise _forbidden(text)
    if reason := next((one for one in reasons.values() if one not in ("", OUTSIDE)), ""):
        text = f"{path} is left out of the ingest ({reason}), so its history is, too."
        raise _forbidden(text)


def _forbidden(text: str) -> InvalidInput:
    return InvalidInput(text, code="FORBIDDEN_PATH")


def _places(root: Path, work_tree: Path) -> tuple[str, str]:
    if root.is_relative_to(work_tree):
        inside = root.relative_to(work_tree).as_posix()
        return ("" if inside == "." else f"{inside}/"), ""
    return "", f"{work_tree.relative_to(root).as_posix()}/"
