"""Compares the chunks of a root's live rows with Chroma and the word index."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.embedding.types import Vectors
from apps.index import queries, sharing
from apps.index.lexical import ChunkFacts, get_lexical
from apps.index.models import Root
from apps.index.spans import Span, unpack
from apps.index.texts import get_texts
from apps.index.types import Check
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
    comparison = _Comparison(root, live, found)
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
    no_vector: NameSample = field(default_factory=NameSample)
    bad_vector: NameSample = field(default_factory=NameSample)
    too_many: NameSample = field(default_factory=NameSample)
    no_words: NameSample = field(default_factory=NameSample)
    no_vector_for: NameSample = field(default_factory=NameSample)
    no_text: NameSample = field(default_factory=NameSample)
    words_differ: NameSample = field(default_factory=NameSample)
    dimensions: set[int] = field(default_factory=set)
    chroma_error: str = ""
    words_error: str = ""

    def compare(self, batch: Sequence[tuple[FileRow, list[str]]]) -> None:
        ids = [chunk_id for _, of_row in batch for chunk_id in of_row]
        vectors = self._from_chroma(ids)
        words = self._from_words(ids)
        self.found.chunks += sum(row.embedded for row, _ in batch)
        self.found.vectors += len(vectors)
        self.found.words += len(words)
        for row, of_row in batch:
            self._compare_row(row, of_row, vectors, words)
        self._compare_texts([row for row, _ in batch])

    def report(self) -> None:
        """Add the differences of the chunks that must exist."""
        samples: list[tuple[NameSample, Kind, str]] = [
            (self.no_vector, "vectors_missing", "files with chunks that have no vector"),
            (self.too_many, "vectors_left_over", "files with more vectors than their row says"),
            (self.bad_vector, "vectors_unreadable", "chunks whose vector is none"),
            (self.no_words, "words_missing", "files or chunks without words"),
            (self.no_vector_for, "words_left_over", "chunks with words and no vector"),
            (self.no_text, "texts_missing", "files without their text"),
            (self.words_differ, "words_differ", "chunks whose words are of other lines"),
        ]
        for sample, kind, detail in samples:
            if sample:
                self.found.add(kind, f"{detail}, {sample}")
        if self.chroma_error:
            self.found.add("vectors_unreadable", self.chroma_error)
        if self.words_error:
            self.found.add("words_unreadable", self.words_error)
        lock = queries.index_lock()
        if lock and self.root.model == lock.model and self.dimensions - {lock.dimension}:
            lengths = ", ".join(map(str, sorted(self.dimensions)))
            self.found.add("lock", f"{lengths} dimensions, the index is locked to {lock.dimension}")

    def compare_rest(self, check: Check) -> None:
        """Find chunks in the stores that have no row. Chunks of dead rows are left to the sweep."""
        try:
            count = get_store().count(self.root.store) if not self.chroma_error else 0
            if count > max(self.found.vectors, self._shared_chunks):
                self._report_left_over(
                    "vectors_left_over", get_store().each_id(self.root.store), check
                )
        except Unavailable as error:
            self.found.add("vectors_unreadable", error.message)
        try:
            if not self.words_error:
                self._compare_words(check)
        except Unavailable as error:
            self.found.add("words_unreadable", error.message)

    def _compare_words(self, check: Check) -> None:
        lexical = get_lexical()
        store = self.root.store
        if not lexical.exists(store):
            return
        if not lexical.is_intact(store):
            self.found.add("words_unreadable", "SQLite finds a fault, or it is of another version")
            return
        if lexical.count(store) > max(self.found.words, self._shared_chunks):
            self._report_left_over("words_left_over", sorted(lexical.ids(store)), check)
        for kind, detail in lexical.faults(store):
            self.found.add(kind, detail)

    @cached_property
    def _shared_chunks(self) -> int:
        """Chunks of the store that several roots share; 0 if this root has it alone."""
        return sharing.stored_chunks(self.root) if sharing.is_shared(self.root) else 0

    def _report_left_over(self, kind: Kind, ids: Iterable[str], check: Check) -> None:
        unknown = NameSample()
        for part in slices(ids, IDS_AT_ONCE):
            check()
            unknown.extend(without_row(self.root, part))
        if unknown:
            self.found.add(kind, f"chunks that no row tells of, {unknown}")

    def _from_chroma(self, ids: Sequence[str]) -> dict[str, float]:
        """Return id → length of the vector, for the chunks that Chroma has."""
        if self.chroma_error:
            return {}
        try:
            named, vectors = get_store().audit(self.root.store, ids)
        except (Unavailable, ValueError, KeyError) as error:
            # Continue with the words and the other roots.
            self.chroma_error = str(error) or type(error).__name__
            return {}
        if len(named):
            self.dimensions.add(vectors.shape[1])
        return dict(zip(named, _lengths(vectors), strict=True))

    def _from_words(self, ids: Sequence[str]) -> dict[str, ChunkFacts]:
        if self.words_error:
            return {}
        try:
            return get_lexical().facts(self.root.store, ids)
        except Unavailable as error:
            self.words_error = error.message
            return {}

    def _compare_row(
        self,
        row: FileRow,
        ids: Sequence[str],
        vectors: Mapping[str, float],
        words: Mapping[str, ChunkFacts],
    ) -> None:
        stored = {chunk_id for chunk_id in ids if chunk_id in vectors}
        indexed = {chunk_id for chunk_id in ids if chunk_id in words}
        if len(stored) < row.embedded and not self.chroma_error:
            self.no_vector.add(f"{row.path} ({len(stored)} of {row.embedded})")
        if len(indexed) < row.embedded and not self.words_error:
            self.no_words.add(f"{row.path} ({len(indexed)} of {row.embedded})")
        elif len(stored) == row.embedded and not self.words_error:
            self.no_words.extend(sorted(stored - indexed))
            self.no_vector_for.extend(sorted(indexed - stored))
        if len(stored) > row.embedded:
            self.too_many.add(f"{row.path} ({len(stored)} instead of {row.embedded})")
        self.bad_vector.extend(
            chunk_id for chunk_id in stored if abs(vectors[chunk_id] - 1) > TOLERANCE
        )
        self.words_differ.extend(_differing(row, ids, words))

    def _compare_texts(self, rows: Sequence[FileRow]) -> None:
        texts = get_texts().read({row.sha256 for row in rows if row.spans})
        self.no_text.extend(
            row.path
            for row in rows
            if row.spans
            and len(texts.get(row.sha256, ""))
            < max((span.offset + span.length for span in _spans(row)), default=0)
        )


def _differing(row: FileRow, ids: Sequence[str], words: Mapping[str, ChunkFacts]) -> Iterator[str]:
    of_row = _spans(row)
    for index, (chunk_id, span) in enumerate(zip(ids, of_row, strict=False)):
        if chunk_id in words and _place(words[chunk_id]) != (
            str(row.document),
            row.path,
            row.sha256,
            index,
            span,
        ):
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
