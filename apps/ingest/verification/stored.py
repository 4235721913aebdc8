"""Compares the chunks of a root's live rows with Chroma, the parts of the index and the texts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.embedding.types import Vectors
from apps.index import queries, sharing
from apps.index.mapped import files, lists, part
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root
from apps.index.spans import Span, unpack
from apps.index.texts import get_texts
from apps.index.types import Check, ChunkFacts
from apps.index.vectors.store import get_store
from apps.ingest.verification.rows import FileRow, batches, without_row
from apps.ingest.verification.types import Kind, NameSample, RootComparison

# Ids that are looked up together.
IDS_AT_ONCE = 500
# How far the length of a stored vector may be from 1.
TOLERANCE = 1e-3


def compare(root: Root, live: Sequence[FileRow], found: RootComparison, check: Check) -> None:
    """Compare all chunks of a root. Raises Unavailable if a store is unavailable."""
    get_store()
    comparison = _Comparison(root, live, found, _mapped(root, found, check))
    for batch in batches([row for row in live if row.chunks]):
        check()
        comparison.compare(batch)
    comparison.report()
    comparison.compare_rest(check)


@dataclass
class _Comparison:
    root: Root
    live: Sequence[FileRow]
    found: RootComparison
    index: MappedRoot
    no_vector: NameSample = field(default_factory=NameSample)
    bad_vector: NameSample = field(default_factory=NameSample)
    too_many: NameSample = field(default_factory=NameSample)
    not_indexed: NameSample = field(default_factory=NameSample)
    no_text: NameSample = field(default_factory=NameSample)
    differing: NameSample = field(default_factory=NameSample)
    dimensions: set[int] = field(default_factory=set)
    chroma_error: str = ""
    index_error: str = ""

    def compare(self, batch: Sequence[tuple[FileRow, list[str]]]) -> None:
        ids = [chunk_id for _, of_row in batch for chunk_id in of_row]
        vectors = self._from_chroma(ids)
        facts = self._from_index(ids)
        self.found.chunks += sum(row.embedded for row, _ in batch)
        self.found.vectors += len(vectors)
        self.found.indexed += len(facts)
        for row, of_row in batch:
            self._compare_row(row, of_row, vectors, facts)
        self._compare_texts([row for row, _ in batch])

    def report(self) -> None:
        """Add the differences of the chunks that must exist."""
        samples: list[tuple[NameSample, Kind, str]] = [
            (self.no_vector, "vectors_missing", "files with chunks that have no vector"),
            (self.too_many, "vectors_left_over", "files with more vectors than their row says"),
            (self.bad_vector, "vectors_unreadable", "chunks whose vector is none"),
            (self.not_indexed, "index_missing", "files with chunks that no part has"),
            (self.no_text, "texts_missing", "files without their text"),
            (self.differing, "index_differs", "chunks that the index has of other lines"),
        ]
        for sample, kind, detail in samples:
            if sample:
                self.found.add(kind, f"{detail}, {sample}")
        if self.chroma_error:
            self.found.add("vectors_unreadable", self.chroma_error)
        if self.index_error:
            self.found.add("index_unreadable", self.index_error)
        lock = queries.index_lock()
        if lock and self.root.model == lock.model and self.dimensions - {lock.dimension}:
            lengths = ", ".join(map(str, sorted(self.dimensions)))
            self.found.add("lock", f"{lengths} dimensions, the index is locked to {lock.dimension}")

    def compare_rest(self, check: Check) -> None:
        """Find vectors that have no row. Chunks of dead rows are left to the sweep."""
        try:
            count = get_store().count(self.root.store) if not self.chroma_error else 0
            if count > max(self.found.vectors, self._shared_chunks):
                self._report_left_over(check)
        except Unavailable as error:
            self.found.add("vectors_unreadable", error.message)

    @cached_property
    def _shared_chunks(self) -> int:
        """Chunks of the store that several roots share; 0 if this root has it alone."""
        return sharing.stored_chunks(self.root) if sharing.is_shared(self.root) else 0

    def _report_left_over(self, check: Check) -> None:
        unknown = NameSample()
        for ids in slices(get_store().each_id(self.root.store), IDS_AT_ONCE):
            check()
            unknown.extend(without_row(self.root, ids))
        if unknown:
            self.found.add("vectors_left_over", f"chunks that no row tells of, {unknown}")

    def _from_chroma(self, ids: Sequence[str]) -> dict[str, float]:
        """Return id → length of the vector, for the chunks that Chroma has."""
        if self.chroma_error:
            return {}
        try:
            named, vectors = get_store().audit(self.root.store, ids)
        except (Unavailable, ValueError, KeyError) as error:
            # Continue with the index and the other roots.
            self.chroma_error = str(error) or type(error).__name__
            return {}
        if len(named):
            self.dimensions.add(vectors.shape[1])
        return dict(zip(named, _lengths(vectors), strict=True))

    def _from_index(self, ids: Sequence[str]) -> dict[str, ChunkFacts]:
        try:
            return self.index.facts(ids)
        except files.Damaged as error:
            self.index_error = str(error)
            return {}

    def _compare_row(
        self,
        row: FileRow,
        ids: Sequence[str],
        vectors: Mapping[str, float],
        facts: Mapping[str, ChunkFacts],
    ) -> None:
        stored = {chunk_id for chunk_id in ids if chunk_id in vectors}
        indexed = sum(chunk_id in facts for chunk_id in ids)
        if len(stored) < row.embedded and not self.chroma_error:
            self.no_vector.add(f"{row.path} ({len(stored)} of {row.embedded})")
        if indexed < row.embedded and not self.index_error:
            self.not_indexed.add(f"{row.path} ({indexed} of {row.embedded})")
        if len(stored) > row.embedded:
            self.too_many.add(f"{row.path} ({len(stored)} instead of {row.embedded})")
        self.bad_vector.extend(
            chunk_id for chunk_id in stored if abs(vectors[chunk_id] - 1) > TOLERANCE
        )
        self.differing.extend(_differing(row, ids, facts))

    def _compare_texts(self, rows: Sequence[FileRow]) -> None:
        texts = get_texts().read({row.sha256 for row in rows if row.spans})
        self.no_text.extend(
            row.path
            for row in rows
            if row.spans
            and len(texts.get(row.sha256, ""))
            < max((span.offset + span.length for span in _spans(row)), default=0)
        )


def _mapped(root: Root, found: RootComparison, check: Check) -> MappedRoot:
    """The root as it lists its parts, each compared with its checksums."""
    for entry in root.parts:
        try:
            files.verify(part.path_of(lists.folder(), entry["name"]), check)
        except (files.Damaged, OSError) as error:
            found.add("index_unreadable", str(error))
    return lists.opened(root)


def _differing(row: FileRow, ids: Sequence[str], facts: Mapping[str, ChunkFacts]) -> Iterator[str]:
    for index, (chunk_id, span) in enumerate(zip(ids, _spans(row), strict=False)):
        place = str(row.document), row.path, row.sha256, index, span
        if chunk_id in facts and _place(facts[chunk_id]) != place:
            yield chunk_id


def _place(facts: ChunkFacts) -> tuple[str, str, str, int, Span]:
    span = Span(facts.start_line, facts.end_line, facts.offset, facts.length)
    return (facts.source_file, facts.path, facts.sha256, facts.chunk_index, span)


def _spans(row: FileRow) -> list[Span]:
    try:
        return unpack(row.spans)
    except ValueError:
        return []


def _lengths(vectors: Vectors) -> list[float]:
    """Return the length of each row. NaN and infinity count as 0 and as a very large number."""
    wide = np.nan_to_num(vectors.astype(np.float64))
    lengths: list[float] = np.sqrt(np.einsum("ij,ij->i", wide, wide)).tolist()
    return lengths
