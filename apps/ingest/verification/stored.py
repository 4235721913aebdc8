"""Compares the chunks of a root's live rows with Chroma and the word index."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from apps.core.errors import Unavailable
from apps.embedding.types import Vectors
from apps.index import queries
from apps.index.lexical import StoredChunk, get_lexical
from apps.index.models import Root
from apps.index.types import Check, StoredMatch
from apps.index.vectors.records import chunk_hash
from apps.index.vectors.store import get_store
from apps.ingest.verification.rows import FileRow, batches, without_row
from apps.ingest.verification.types import Kind, NameSample, RootComparison, slices

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
    text_differs: NameSample = field(default_factory=NameSample)
    dimensions: set[int] = field(default_factory=set)
    chroma_error: str = ""
    words_error: str = ""

    def compare(self, batch: Sequence[tuple[FileRow, list[str]]]) -> None:
        ids = [each for _, of_row in batch for each in of_row]
        matches, vectors = self._from_chroma(ids)
        words = self._from_words(ids)
        self.found.chunks += sum(row.embedded for row, _ in batch)
        self.found.vectors += len(vectors)
        self.found.words += len(words)
        for row, of_row in batch:
            self._compare_row(row, of_row, matches, vectors, words)

    def report(self) -> None:
        """Add the differences of the chunks that must exist."""
        samples: list[tuple[NameSample, Kind, str]] = [
            (self.no_vector, "vectors_missing", "files with chunks that have no vector"),
            (self.too_many, "vectors_left_over", "files with more vectors than their row says"),
            (self.bad_vector, "vectors_unreadable", "chunks whose vector is none"),
            (self.no_words, "words_missing", "files or chunks without words"),
            (self.no_vector_for, "words_left_over", "chunks with words and no vector"),
            (self.text_differs, "text_differs", "chunks whose text or facts differ"),
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
            if not self.chroma_error and get_store().count(self.root.id) > self.found.vectors:
                self._report_left_over(
                    "vectors_left_over", get_store().each_id(self.root.id), check
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
        if not lexical.exists(self.root.id):
            return
        if not lexical.is_intact(self.root.id):
            self.found.add("words_unreadable", "SQLite finds a fault, or it is of another version")
            return
        if lexical.count(self.root.id) > self.found.words:
            self._report_left_over("words_left_over", sorted(lexical.ids(self.root.id)), check)
        for kind, detail in lexical.faults(self.root.id):
            self.found.add(kind, detail)

    def _report_left_over(self, kind: Kind, ids: Iterable[str], check: Check) -> None:
        unknown = NameSample()
        for part in slices(ids, IDS_AT_ONCE):
            check()
            unknown.extend(without_row(self.root, part))
        if unknown:
            self.found.add(kind, f"chunks that no row tells of, {unknown}")

    def _from_chroma(self, ids: Sequence[str]) -> tuple[dict[str, StoredMatch], dict[str, float]]:
        """Return id → record and id → length of the vector, for the chunks that Chroma has."""
        if self.chroma_error:
            return {}, {}
        try:
            matches, named, vectors = get_store().audit(self.root.id, ids)
        except (Unavailable, ValueError, KeyError) as error:
            # Continue with the words and the other roots.
            self.chroma_error = str(error) or type(error).__name__
            return {}, {}
        if len(named):
            self.dimensions.add(vectors.shape[1])
        return matches, dict(zip(named, _lengths(vectors), strict=True))

    def _from_words(self, ids: Sequence[str]) -> dict[str, StoredChunk]:
        if self.words_error:
            return {}
        try:
            return get_lexical().chunks(self.root.id, ids)
        except Unavailable as error:
            self.words_error = error.message
            return {}

    def _compare_row(
        self,
        row: FileRow,
        ids: Sequence[str],
        matches: Mapping[str, StoredMatch],
        vectors: Mapping[str, float],
        words: Mapping[str, StoredChunk],
    ) -> None:
        stored = {each for each in ids if each in vectors and each in matches}
        indexed = {each for each in ids if each in words}
        if len(stored) < row.embedded and not self.chroma_error:
            self.no_vector.add(f"{row.path} ({len(stored)} of {row.embedded})")
        if len(indexed) < row.embedded and not self.words_error:
            self.no_words.add(f"{row.path} ({len(indexed)} of {row.embedded})")
        elif len(stored) == row.embedded and not self.words_error:
            self.no_words.extend(sorted(stored - indexed))
            self.no_vector_for.extend(sorted(indexed - stored))
        if len(stored) > row.embedded:
            self.too_many.add(f"{row.path} ({len(stored)} instead of {row.embedded})")
        self.bad_vector.extend(each for each in stored if abs(vectors[each] - 1) > TOLERANCE)
        self.text_differs.extend(self._differing(row, ids, matches, words))

    def _differing(
        self,
        row: FileRow,
        ids: Sequence[str],
        matches: Mapping[str, StoredMatch],
        words: Mapping[str, StoredChunk],
    ) -> Iterator[str]:
        for index, chunk_id in enumerate(ids):
            match, chunk = matches.get(chunk_id), words.get(chunk_id)
            wrong = [
                match and _vector_facts(match) != _expected(row, index, match.text),
                chunk and _word_facts(chunk) != _expected(row, index, chunk.text)[:4],
                match and chunk and not _agree(match, chunk),
            ]
            if any(wrong):
                yield chunk_id


def _expected(row: FileRow, index: int, text: str) -> tuple[object, ...]:
    digest = chunk_hash(row.path, index, text)
    return (str(row.id), row.path, index, digest, str(row.run_id), row.sha256)


def _vector_facts(match: StoredMatch) -> tuple[object, ...]:
    facts = match.facts
    return (
        facts.source_file,
        facts.path,
        facts.chunk_index,
        facts.chunk_hash,
        facts.run_id,
        facts.file_hash,
    )


def _word_facts(chunk: StoredChunk) -> tuple[object, ...]:
    facts = chunk.facts
    return (facts.source_file, facts.path, facts.chunk_index, facts.chunk_hash)


def _agree(match: StoredMatch, chunk: StoredChunk) -> bool:
    """Whether both stores have the same text and lines. The hash does not cover the lines."""
    lines = (match.facts.start_line, match.facts.end_line)
    same_lines = lines == (chunk.facts.start_line, chunk.facts.end_line)
    return match.text == chunk.text and same_lines


def _lengths(vectors: Vectors) -> list[float]:
    """Return the length of each row. NaN and infinity count as 0 and as a very large number."""
    wide = np.nan_to_num(vectors.astype(np.float64))
    lengths: list[float] = np.sqrt(np.einsum("ij,ij->i", wide, wide)).tolist()
    return lengths
