"""Files that other roots have in the same store: they are neither parsed nor embedded again.

A root that is ingested for the first time takes the store of a root that has many of its files, by
path and content. Later, each new or changed file that a root of the store has published takes over
that row's document.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

from apps.index.models import IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.index.root_directory import digest_at
from apps.index.texts import get_texts
from apps.index.types import Check
from apps.ingest.runs import integrity
from apps.ingest.runs.chunker_version import makes_the_same_chunks
from apps.ingest.types import Candidate

# Files of a new root that are looked up in the others.
SAMPLE = 200
# A store is shared with a root if this part of the sample is in it, and at least so many files.
MIN_SHARE, MIN_FILES = 0.25, 3
# With this part of it no other root is looked for.
ENOUGH = 0.9
# A new root with a smaller part of the files of another one does not share its store: most of what
# the store returns would not be its own.
MIN_SIZE = 0.1
# A run of at least so large a part of the files of the largest other root reads all its rows at
# once: a query for each few files takes longer. A row takes 1 KB, so only of so many.
READ_ALL_SHARE, MAX_READ_AT_ONCE = 0.25, 100_000


def find_store(run: IngestRun, files: Sequence[Candidate], check: Check) -> UUID | None:
    """Return the store of the root that has most of some files, for a new root; None if no root has
    enough of them, and the new root gets a store of its own.

    Roots that are damaged, of another model or of another chunker are left out.
    """
    roots = {root.id: root for root in _current_roots(run) if len(files) >= MIN_SIZE * root.files}
    if not roots or len(files) < MIN_FILES:
        return None
    hashes: dict[str, str] = {}
    for candidate in files[:: max(1, len(files) // SAMPLE)]:
        check()
        # The chunking step reports a file that cannot be read.
        if digest := candidate.sha256 or digest_at(Path(run.path), candidate.path):
            hashes[candidate.path] = digest
    # First the largest root of each store: of twenty equal ones it has what the others have.
    by_size = sorted(roots.values(), key=lambda root: root.files)
    largest = {root.store: root for root in by_size}.values()
    for some, share in ((largest, ENOUGH), (by_size, MIN_SHARE)):
        rows = _published(some).filter(sha256__in=set(hashes.values()), path__in=list(hashes))
        counts = Counter(
            root_id
            for root_id, path, digest in rows.values_list("root_id", "path", "sha256")
            if hashes.get(path) == digest and root_id
        )
        for root_id, count in counts.most_common(1):
            if count >= max(MIN_FILES, share * len(hashes)):
                return roots[root_id].store
    return None


def leave_store(root: Root, run: IngestRun, files: Sequence[Candidate], check: Check) -> None:
    """Move a root to another store, as its vectors are of another model than the run's."""
    store = find_store(run, files, check)
    if store is None:
        taken = Root.objects.filter(store=root.id).exclude(id=root.id).exists()
        store = uuid4() if taken else root.id
    Root.objects.filter(id=root.id).update(store=store)
    root.store = store


class SharedFile(NamedTuple):
    """The columns of a row that the row of an equal file takes over, and its root."""

    root_id: UUID
    path: str
    document: UUID
    language: str
    sha256: str
    chunks: int
    embedded: int
    encoding: str
    spans: bytes


class SharedFiles:
    """What the other roots of a store have published."""

    def __init__(self, root: Root, run: IngestRun, files: int) -> None:
        """files: how many the run ingests"""
        self._root = root
        self._run = run
        self._files = files
        self._has_all: dict[UUID, bool] = {}

    def find(self, hashes: Mapping[str, str]) -> dict[str, SharedFile]:
        """Return path → file of another root, for the files (path → SHA-256) that one has."""
        if not hashes or not self._roots:
            return {}
        # Most files that the largest root lacks are new, so no root has their texts.
        missing = set(get_texts().missing(set(hashes.values())))
        hashes = {path: digest for path, digest in hashes.items() if digest not in missing}
        # One of twenty equal roots has most files; all of them together, each twenty times.
        first, *others = self._roots
        if READ_ALL_SHARE * first.files <= self._files and first.files <= MAX_READ_AT_ONCE:
            found = [row for path in hashes if (row := self._of_largest.get(path))]
        else:
            found = self._select([first], hashes)
        matches = self._equal(found, hashes)
        if others and (wanted := {key: hashes[key] for key in hashes.keys() - matches.keys()}):
            matches |= self._equal(self._select(others, wanted), wanted)
        return matches

    def _equal(
        self, rows: Iterable[SharedFile], hashes: Mapping[str, str]
    ) -> dict[str, SharedFile]:
        return {
            row.path: row
            for row in rows
            if hashes.get(row.path) == row.sha256 and self._has_all_chunks(row.root_id)
        }

    @cached_property
    def _of_largest(self) -> dict[str, SharedFile]:
        return {row.path: row for row in self._select(self._roots[:1])}

    def _select(
        self, roots: Sequence[Root], hashes: Mapping[str, str] | None = None
    ) -> list[SharedFile]:
        """Return the files of some roots, or those with one of these paths and of these hashes."""
        rows = _published(roots)
        if hashes is not None:
            rows = rows.filter(sha256__in=set(hashes.values()), path__in=list(hashes))
        return [SharedFile(*row) for row in rows.values_list(*SharedFile._fields).iterator()]

    @cached_property
    def _roots(self) -> list[Root]:
        """The other roots of the store, the largest first; of equal ones, that which the others are
        copies of."""
        roots = [root for root in _current_roots(self._run) if root.store == self._root.store]
        return sorted(roots, key=lambda root: (-root.files, root.created_at))

    def _has_all_chunks(self, root_id: UUID) -> bool:
        """Whether the chunks of a root are all there. Most of twenty equal roots are never asked
        for."""
        if root_id not in self._has_all:
            root = next(root for root in self._roots if root.id == root_id)
            self._has_all[root_id] = integrity.has_all_chunks(root)
        return self._has_all[root_id]


def _current_roots(run: IngestRun) -> list[Root]:
    """The published roots whose chunks and vectors are as this run would make them."""
    roots = Root.objects.published().filter(model=run.model, damage="").exclude(path=run.path)
    return [root for root in roots if makes_the_same_chunks(root)]


def _published(roots: Iterable[Root]) -> SourceFileQuerySet:
    """The live rows of some roots that have chunks, and whose chunks are complete."""
    rows = SourceFile.objects.live_in(roots).ingested()
    return rows.filter(problem="", chunks__gt=0).order_by()
