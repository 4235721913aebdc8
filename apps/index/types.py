"""Value types of the index. The rows are in `models`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple
from uuid import UUID

from apps.code.values import Chunk

# Called between the steps of a long operation; raises to end it.
Check = Callable[[], None]


RunState = Literal[
    "queued",
    "scanning",
    "embedding",
    "completed",
    "skipped",
    "cancelled",
    "error",
    "needs_confirmation",
]


RUNNING_STATES: frozenset[str] = frozenset({"scanning", "embedding"})


TERMINAL_STATES: frozenset[str] = frozenset(
    {"completed", "skipped", "cancelled", "error", "needs_confirmation"}
)


def never_cancelled() -> None:
    """The `Check` of an operation that cannot be cancelled."""


class Origin(NamedTuple):
    """Which installation wrote an index, and for which root. Each index records it."""

    installation: str  # Installation.uid
    path: str  # Root.path
    name: str  # Root.name


class Area(NamedTuple):
    """Files that a question may be limited to: a repository, or some of its paths."""

    repository: str  # its id; "": any
    path: str = ""  # a file, a folder or a glob (`globs.area_patterns`); "": all


@dataclass(frozen=True)
class Filters:
    """Restricts a search to some files of a root. An empty field does not restrict."""

    path: str = ""  # prefix of the relative path, or a glob (index/globs.py)
    language: str = ""  # as in SourceFile.language
    areas: tuple[Area, ...] = ()  # a file must be in one of them
    # Left out, of the search page:
    not_paths: tuple[str, ...] = ()  # as `path`
    not_languages: tuple[str, ...] = ()
    not_repositories: tuple[str, ...] = ()  # ids

    def within(self, repository: str) -> "Filters":
        """The filters for the files of one repository: their areas name none, where it has any."""
        if not self.areas:
            return self
        paths = [area.path for area in self.areas if area.repository in ("", repository)]
        if not paths:
            return self
        areas = () if "" in paths else tuple(Area("", path) for path in dict.fromkeys(paths))
        return replace(self, areas=areas)


class Reader(NamedTuple):
    """A root that reads from a store that it shares with other roots (`index.sharing`)."""

    root_id: UUID
    documents: frozenset[str]  # of its live files; the same object for the same generation


@dataclass(frozen=True)
class ChunkRecord:
    """A chunk that is about to be stored, and the file that it is from."""

    id: str  # as in `chunk_ids`
    source_file: str  # SourceFile.document
    run_id: str
    path: str  # relative to the root
    language: str  # as in SourceFile.language
    sha256: str  # of the bytes of the file, hex: the key of its text
    index: int  # within the file, from 0
    chunk: Chunk
