"""Value types of the index. The rows are in `models`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from apps.code.values import Chunk, Symbol

# Called between the steps of a long operation; raises to end it.
Check = Callable[[], None]


# A file: the id of its repository, its path, and its language as in SourceFile.language.
FileKey = tuple[str, str, str]
FileTest = Callable[[FileKey], bool]


class ResultPlace(NamedTuple):
    """Where a result is, for a test."""

    file: FileKey
    first: int  # line, 1-based; 0 if it is unknown
    last: int
    symbol: str = ""


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


class Area(NamedTuple):
    """Files that a question may be limited to: a repository, or some of its paths."""

    repository: str  # its id; "": any
    path: str = ""  # a file, a folder or a glob (`globs.is_in_area`); "": all


@dataclass(frozen=True)
class Filters:
    """Restricts a search to some files of a root. An empty field does not restrict."""

    path: str = ""  # prefix of the relative path, or a glob (index/globs.py)
    language: str = ""  # as in SourceFile.language
    areas: tuple[Area, ...] = ()  # a file must be in one of them
    # Of the search box: whether a file may have results. It can be pickled and compared.
    test: FileTest | None = None

    def within(self, repository: str) -> "Filters":
        """The filters for the files of one repository: their areas name none, where it has any."""
        if not self.areas:
            return self
        paths = [area.path for area in self.areas if area.repository in ("", repository)]
        if not paths:
            return self
        areas = () if "" in paths else tuple(Area("", path) for path in dict.fromkeys(paths))
        return replace(self, areas=areas)


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


class ChunkFacts(NamedTuple):
    """A chunk without its text, which is a part of the text of its file."""

    id: str  # as in the vector store
    source_file: str  # SourceFile.document
    path: str  # relative to the root
    chunk_index: int  # within the file, from 0
    start_line: int  # 1-based
    end_line: int  # included
    symbol: str
    names: tuple[str, ...]  # declared by the chunk
    signature: str
    language: str
    sha256: str  # of the file: the key of its text
    offset: int  # characters of the file's text before the chunk
    length: int  # characters of the chunk


@dataclass(frozen=True, kw_only=True)
class StoredSymbol(Symbol):
    """A definition and its file."""

    source_file: str  # SourceFile.document
    file_path: str  # relative to the root
    language: str
