"""The files that git tracks in one work tree, as a walk finds them or misses them."""

from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

from apps.code.paths import folders_of
from apps.index.root_directory import MAX_DEPTH, TOO_DEEP
from apps.index.types import Check
from apps.ingest.discovery.git_index import Index, Kind, read_index, state_of_index
from apps.ingest.discovery.repository import Repository
from apps.ingest.discovery.selection import Selection, is_selected
from apps.ingest.types import ListedFile

NOT_CHECKED_OUT = "Not checked out"

# Discoveries of single paths follow each other, and an index of 70,000 paths takes .3 s to read.
MAX_RECENT = 4


# The tracked paths of a repository, relative to the root, and the folders above them. These end
# with a slash.
_Paths = tuple[Mapping[str, Kind], Set[str]]


class Tracked:
    """The tracked paths of a work tree, or of the part of it that is below the root.

    repository: None if the files are not in a repository: then none is tracked
    index: that of the repository, unless it was read earlier
    selection: the paths that are looked at
    prefix: path of the work tree; "", also if the root is inside it, or with a slash at its end

    Paths are relative to the root. Raises Unavailable GIT_FAILED.
    """

    def __init__(
        self,
        repository: Repository | None,
        root: Path,
        check: Check,
        selection: Selection = None,
        prefix: str = "",
    ) -> None:
        self.repository = repository
        self._selection = selection
        self.index: Index | None = None
        kinds: Mapping[str, Kind] = {}
        self._folders: Set[str] = frozenset()
        if repository and selection is None:
            self.index = read_index(repository, root, check)
            kinds, self._folders = _paths(self.index, prefix)
        elif repository:
            kinds, self._folders = _read_once(repository, root, check, prefix)
        self.is_empty = not kinds
        self._waiting = dict(kinds)
        if selection is not None:
            self._waiting = {
                path: kind
                for path, kind in kinds.items()
                # The folder of another kind may be missing, and above a selected path.
                if kind is not Kind.FILE or is_selected(selection, path)
            }
        self._closed: set[str] = set()
        self._entered: set[str] = set()

    def take(self, path: str) -> Kind | None:
        """Return what git tracks at a path that exists, or None. Call it once for a path."""
        return self._waiting.pop(path, None)

    def has_below(self, folder: str) -> bool:
        """Whether git tracks a file below a folder. Its path ends with a slash."""
        return folder in self._folders

    def enter(self, folder: str) -> None:
        """Note that a folder exists and is listed."""
        self._entered.add(folder)

    def close(self, folder: str) -> None:
        """Note that the tracked files below a folder are left out with it."""
        self._closed.add(folder)

    def missing(self) -> Iterator[ListedFile]:
        """Yield the selected files that `take` was not called for: they do not exist, or are below
        a link. A folder that a sparse checkout left out is one entry."""
        listed: set[str] = set()
        for path, kind in self._waiting.items():
            if self._is_closed(path):
                continue
            file = self._missing_file(path, kind)
            if file.path not in listed and is_selected(self._selection, file.path):
                listed.add(file.path)
                yield file

    def _missing_file(self, path: str, kind: Kind) -> ListedFile:
        if path.count("/") > MAX_DEPTH:
            return ListedFile(path, TOO_DEEP)
        if kind is Kind.SUBMODULE:
            return ListedFile(f"{path}/", NOT_CHECKED_OUT)
        if kind is Kind.ABSENT:
            # The uppermost folder on the path that does not exist, or the path itself.
            missing = (folder for folder in folders_of(path) if folder not in self._entered)
            return ListedFile(next(missing, path), NOT_CHECKED_OUT)
        return ListedFile(path)

    def _is_closed(self, path: str) -> bool:
        closed = self._closed
        return bool(closed) and not closed.isdisjoint(["", *folders_of(path.rstrip("/"))])


_recent: dict[object, _Paths] = {}


def _read_once(repository: Repository, root: Path, check: Check, prefix: str) -> _Paths:
    """Read an index, unless it is one of the last and git has not written it since."""
    key = (repository, root, prefix, state_of_index(repository))
    paths = _recent.get(key)
    if paths is None:
        paths = _paths(read_index(repository, root, check), prefix)
        while len(_recent) >= MAX_RECENT:
            del _recent[next(iter(_recent))]
        _recent[key] = paths
    return paths


def _paths(index: Index, prefix: str) -> _Paths:
    kinds = {f"{prefix}{path}": entry.kind for path, entry in index.entries.items()}
    return kinds, _folders_of(kinds)


def _folders_of(paths: Iterable[str]) -> set[str]:
    """Return the folders above the paths. Each ends with a slash."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rstrip("/").rpartition("/")[0]
        while folder and f"{folder}/" not in folders:
            folders.add(f"{folder}/")
            folder = folder.rpartition("/")[0]
    return folders
