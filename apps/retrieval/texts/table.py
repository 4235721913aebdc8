"""The files of a published generation, and which of them may match."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from apps.index import queries
from apps.index.grams import ANY, Required, Segment
from apps.index.models import Root
from apps.index.query_cache import per_generation

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FileFacts:
    """An ingested file."""

    document: str  # SourceFile.document
    path: str
    language: str
    sha256: str
    size: int  # bytes


@dataclass
class FileTable:
    """The ingested files of one generation of a root, by path."""

    files: list[FileFacts]
    keys: NDArray[np.bytes_]  # the distinct SHA-256 of the files, ascending
    key_of: Numbers  # for each file, the number of its key
    # File name of a segment → number of the key of each of its texts, -1 for other texts.
    _keys_of: dict[str, Numbers] = field(default_factory=dict)
    _numbers_of: dict[str, int] = field(default_factory=dict)

    def candidates(self, segments: Sequence[Segment], required: Required) -> tuple[Numbers, int]:
        """The numbers of the files that may match, and how many of them no segment knows."""
        if required == ANY:
            return np.arange(len(self.files)), 0
        may_match = np.zeros(len(self.keys), np.bool_)
        known = np.zeros(len(self.keys), np.bool_)
        current = {segment.path.name: segment for segment in segments}
        for name in self._keys_of.keys() - current.keys():
            self._keys_of.pop(name, None)
        for name, segment in current.items():
            numbers = self._numbers(name, segment)
            own = numbers >= 0
            if own.any():
                known[numbers[own]] = True
                may_match[numbers[segment.matching(required) & own]] = True
        unknown = ~known
        files = np.flatnonzero((may_match | unknown)[self.key_of])
        return files, int(np.count_nonzero(unknown[self.key_of]))

    def number_of(self, document: str) -> int | None:
        """The number of the file with this document."""
        if not self._numbers_of:
            self._numbers_of.update((each.document, n) for n, each in enumerate(self.files))
        return self._numbers_of.get(document)

    def _numbers(self, name: str, segment: Segment) -> Numbers:
        if (numbers := self._keys_of.get(name)) is None:
            at = np.searchsorted(self.keys, segment.keys)
            at[at == len(self.keys)] = 0
            same = self.keys[at] == segment.keys if len(self.keys) else np.zeros(len(at), np.bool_)
            numbers = self._keys_of[name] = np.where(same, at, -1)
        return numbers


@per_generation
def file_table(root: Root) -> FileTable:
    """The table of the generation of the object `root`. Cached."""
    columns = ("document", "path", "language", "sha256", "size")
    rows = queries.generation_files(root).ingested().order_by("path").values_list(*columns)
    files = [FileFacts(str(row[0]), *row[1:]) for row in rows.iterator()]
    hashes = np.array([bytes.fromhex(each.sha256) for each in files], "S32")
    keys, key_of = np.unique(hashes, return_inverse=True)
    return FileTable(files, keys, key_of)
