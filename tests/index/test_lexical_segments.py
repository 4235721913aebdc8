"""However chunks are added, merged and deleted, the index answers as BM25 over the chunks that are
left."""

import sqlite3
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from math import log
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from apps.code.values import Chunk
from apps.index.lexical import LexicalStore, SegmentWriter, merging, schema, segments, store, words
from apps.index.lexical.building import Builder
from apps.index.lexical.encoding import TIMES_BITS, HitLists, decode, encode
from apps.index.lexical.scoring import K1, WEIGHTS, B, concatenate
from apps.index.lexical.words import runs, words_of
from apps.index.types import ChunkRecord
from apps.ingest.runs.job import RunCancelled

ROOT = uuid4()
NAMES = ("open", "parse", "parseHTTP", "socket", "größe", "x_1")


def record(number: int, run: str, file: int, text: str) -> ChunkRecord:
    path = f"{NAMES[file]}.py"
    chunk = Chunk(text, 1, 1, symbol=NAMES[number % 5], names=(NAMES[number % 6],))
    key = f"{run}/{path}"
    return ChunkRecord(f"{run}:{path}:{number}", key, run, path, "python", "0" * 64, number, chunk)


def delete_run(store: LexicalStore, run: str) -> int:
    """Delete the files of a run, as `record` names them."""
    files = [each for each in store.documents(ROOT) if each.startswith(f"{run}/")]
    return store.delete_files(ROOT, files)


class Naive:
    """BM25F by its formula, chunk by chunk."""

    def __init__(self) -> None:
        self.chunks: dict[str, ChunkRecord] = {}

    def weighted(self, chunk: ChunkRecord) -> tuple[Counter[str], int]:
        """The weighted tf of each word of a chunk, and how many words it has."""
        made = chunk.chunk
        texts = {"body": made.text, "path": chunk.path}
        texts |= {"names": " ".join(made.names), "symbol": made.symbol}
        weighted: Counter[str] = Counter()
        length = 0
        for field, text in texts.items():
            for word, times in Counter(words(text)).items():
                weighted[word] += int(WEIGHTS[field]) * min(times, 255)
                length += times
        return weighted, length

    def scores(self, query: Sequence[str]) -> dict[str, float]:
        counted = {id: self.weighted(chunk) for id, chunk in self.chunks.items()}
        mean = sum(length for _, length in counted.values()) / max(len(counted), 1)
        scores: Counter[str] = Counter()
        for word in query:
            n = sum(word in weighted for weighted, _ in counted.values())
            idf = log(1 + (len(counted) - n + 0.5) / (n + 0.5))
            for id, (weighted, length) in counted.items():
                tf = weighted[word]
                norm = K1 * (1 - B + B * length / mean)
                scores[id] += idf * tf * (K1 + 1) / (tf + norm)
        return {id: score for id, score in scores.items() if score}

    def with_identifier(self, name: str) -> set[str]:
        return {id for id, chunk in self.chunks.items() if name in runs(chunk.chunk.text)}


class Machine(RuleBasedStateMachine):
    """Adds at once, adds by a writer, merges (some are cancelled), and deletes."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.store = LexicalStore(self.folder / uuid4().hex)
        self.writer = SegmentWriter(self.store, ROOT)
        self.naive = Naive()
        self.collected: dict[str, ChunkRecord] = {}
        self.number = 0

    def teardown(self) -> None:
        self.store.close()

    texts = st.lists(st.sampled_from(NAMES), max_size=9).map(" ".join)
    repeated = st.integers(1, 300).map(lambda times: "socket " * times)
    batches = st.lists(
        st.tuples(st.sampled_from("rs"), st.integers(0, 5), st.one_of(texts, repeated)),
        min_size=1,
        max_size=4,
    )

    def _records(self, batch: list[tuple[str, int, str]]) -> list[ChunkRecord]:
        start, self.number = self.number, self.number + len(batch)
        return [record(start + i, *values) for i, values in enumerate(batch)]

    @rule(batch=batches)
    def add(self, batch: list[tuple[str, int, str]]) -> None:
        records = self._records(batch)
        self.store.add(ROOT, records)
        self.naive.chunks |= {each.id: each for each in records}

    @rule(batch=batches)
    def collect(self, batch: list[tuple[str, int, str]]) -> None:
        records = self._records(batch)
        self.writer.add(records)
        self.collected |= {each.id: each for each in records}

    @rule()
    def flush(self) -> None:
        self.writer.flush()
        self.naive.chunks |= self.collected
        self.collected = {}

    @rule(steps=st.integers(0, 30))
    def compact(self, steps: int) -> None:
        with suppress(RunCancelled):
            self.store.compact(ROOT, _after(steps))

    @rule(run=st.sampled_from("rs"))
    def delete_run(self, run: str) -> None:
        self.flush()
        self._delete(lambda chunk: chunk.run_id == run)
        delete_run(self.store, run)

    @rule(run=st.sampled_from("rs"), files=st.sets(st.integers(0, 5), max_size=3))
    def delete_files(self, run: str, files: set[int]) -> None:
        self.flush()
        sources = [f"{run}/{NAMES[file]}.py" for file in files]
        self._delete(lambda chunk: chunk.source_file in sources)
        self.store.delete_files(ROOT, sources)

    def _delete(self, is_deleted: Callable[[ChunkRecord], bool]) -> None:
        chunks = self.naive.chunks
        self.naive.chunks = {id: each for id, each in chunks.items() if not is_deleted(each)}

    @invariant()
    def answers_as_the_formula_says(self) -> None:
        if self.collected:
            return  # their length counts already
        for query in (["socket", "pars"], ["größ", "parsehttp", "x", "1"], ["py", "never"]):
            expected = self.naive.scores(query)
            found = {hit.id: hit.score for hit in self.store.search(ROOT, query, 999)}
            assert found == pytest.approx(expected, rel=1e-4)
            counts, chunks = self.store.frequencies(ROOT, query)
            assert chunks == len(self.naive.chunks)
            assert counts == {
                word: n
                for word in query
                if (n := sum(word in self.naive.weighted(c)[0] for c in self.naive.chunks.values()))
            }
        for name in NAMES:
            named = self.store.chunks_with_identifier(ROOT, name, 999)
            assert set(named) == self.naive.with_identifier(name)
        assert self.store.ids(ROOT) == set(self.naive.chunks)
        assert self.store.faults(ROOT) == []
        assert self.store.is_complete(ROOT)


def _after(steps: int) -> Callable[[], None]:
    left = iter(range(steps))

    def check() -> None:
        if next(left, None) is None:
            raise RunCancelled

    return check


@pytest.fixture
def lexical(tmp_path: Path) -> Iterator[LexicalStore]:
    lexical_store = LexicalStore(tmp_path / "lexical")
    yield lexical_store
    lexical_store.close()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MERGE_FACTOR", 3)
    monkeypatch.setattr(merging, "SMALLEST", 4)
    monkeypatch.setattr(merging, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(Machine, "folder", tmp_path, raising=False)


def test_random_adds_merges_and_deletes_answer_as_the_formula(small: None) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Machine, settings=settings(max_examples=40, stateful_step_count=25)
    )


def test_hits_of_deleted_chunks_that_stay_in_large_segments_change_no_answer(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to half of each segment's chunks are deleted before their hits are."""
    monkeypatch.setattr(segments, "LAZY_ABOVE", 1)
    monkeypatch.setattr(segments, "MAX_STALE", 0.5)
    test = settings(max_examples=40, stateful_step_count=25)
    run_state_machine_as_test(Machine, settings=test)  # type: ignore[no-untyped-call]


def test_a_delete_rewrites_no_hits_of_a_large_segment_before_many_chunks_are_deleted(
    lexical: LexicalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "LAZY_ABOVE", 10)
    monkeypatch.setattr(segments, "MAX_STALE", 0.2)
    made = [record(n, "r", n % 6, f"socket word{n}") for n in range(60)]
    # Each chunk is a file.
    made = [replace(each, id=f"{n}:0", source_file=f"{n}", index=0) for n, each in enumerate(made)]
    lexical.add(ROOT, made)
    before = _rows(lexical)
    lexical.delete_files(ROOT, [each.source_file for each in made[:12]])
    assert _rows(lexical) == before
    assert lexical.frequencies(ROOT, ["word3", "word30"]) == ({"word30": 1}, 48)
    lexical.delete_files(ROOT, [made[12].source_file])
    assert (purged := _rows(lexical)) <= before - 13
    assert lexical.frequencies(ROOT, ["word3", "word30"]) == ({"word30": 1}, 47)
    # What was deleted before does not count again.
    lexical.delete_files(ROOT, [made[13].source_file])
    assert _rows(lexical) == purged
    assert lexical.faults(ROOT) == []


@given(
    lists=st.lists(
        st.dictionaries(st.integers(0, 2**28), st.integers(1, 1_785), min_size=1, max_size=20),
        min_size=1,
        max_size=9,
    ),
    first=st.integers(0, 2**30),
)
@pytest.mark.parametrize("bits", TIMES_BITS.values())
def test_hits_are_read_as_they_were_written(
    bits: int, lists: list[dict[int, int]], first: int
) -> None:
    ordered = [sorted(each.items()) for each in lists]
    hits = HitLists(
        np.array(list(map(len, ordered))),
        np.array([first + chunk for each in ordered for chunk, _ in each]),
        np.array([times if bits else 1 for each in ordered for _, times in each]),
    )
    read = decode(list(encode(hits, first, bits)), np.full(len(lists), first), bits)
    assert read.sizes.tolist() == hits.sizes.tolist()
    assert read.chunks.tolist() == hits.chunks.tolist()
    assert read.times.tolist() == hits.times.tolist()


def test_a_hit_that_is_rare_takes_two_bytes_and_one_of_many_one() -> None:
    rare = HitLists(np.array([1]), np.array([1_500]), np.array([2]))
    assert [len(blob) for blob in encode(rare, 1, 3)] == [2]
    dense = HitLists(np.array([1_000]), np.arange(1_000), np.full(1_000, 8))
    assert [len(blob) for blob in encode(dense, 0, 3)] == [1_000]


@pytest.mark.parametrize("size", [1, 20_000])
def test_each_chunk_is_merged_a_few_times_and_few_segments_stay(size: int) -> None:
    """2,000 writes of this size. Segments below SMALLEST are of one level, so there are more merges
    of them."""
    small = merging.SMALLEST / merging.MERGE_FACTOR if size < merging.SMALLEST else 0
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        schema.create(database)
        rewritten, most = 0, 0
        for number in range(2_000):
            numbers = np.zeros(size, np.uint32)
            segments.insert_segment(database, number * 10 + 1, number * size, numbers, numbers)
            while group := merging.due(database):
                rows = merging._segments(database, group)
                first, lengths, files = concatenate(rows)
                for segment in group:
                    segments._drop(database, segment)
                segments.insert_segment(database, max(group) + 1, first, lengths, files)
                rewritten += len(lengths)
            (count,) = database.execute("SELECT count(*) FROM segment").fetchone()
            most = max(most, count)
    assert rewritten / (2_000 * size) <= log(2_000, merging.MERGE_FACTOR) + 1 + small
    assert most <= 2 * merging.MERGE_FACTOR * (1 + log(2_000, merging.MERGE_FACTOR))


def test_a_writer_collects_no_more_words_than_its_memory_allows(
    lexical: LexicalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SEGMENT_BYTES", 100_000)
    writer = SegmentWriter(lexical, ROOT)
    taken = []
    for batch in range(30):
        texts = [" ".join(f"word{batch}x{n}y{i}" for i in range(20)) for n in range(5)]
        records = [record(10 * batch + n, "r", 0, text) for n, text in enumerate(texts)]
        has_new_segment = writer.add(records)
        taken.append(writer._segment.bytes)
        found = lexical.chunks_with_identifier(ROOT, f"word{batch}x0y0", 9)
        assert found == ([records[0].id] if has_new_segment else [])
    assert max(taken) < 100_000
    assert taken.count(0) >= 3
    writer.flush()
    assert lexical.chunks_with_identifier(ROOT, "word29x4y19", 9) == ["r:open.py:294"]


def test_the_estimate_of_the_memory_is_not_too_low() -> None:
    builder = Builder(1)
    names = [f"name{n}" for n in range(20_000)]
    tracemalloc.start()
    try:
        for at in range(0, 20_000, 1_000):
            texts = [" ".join(names[at + n : at + n + 60]) for n in range(0, 1_000, 10)]
            records = [record(at + n, "r", 0, text) for n, text in enumerate(texts)]
            builder.add(records, [1] * len(records))
            words_of.clear()
        del records, texts
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < builder.bytes < 3 * taken


def test_words_that_were_never_written_are_noticed(lexical: LexicalStore) -> None:
    lexical.add(ROOT, [record(1, "r", 0, "socket")])
    assert lexical.is_complete(ROOT)
    writer = SegmentWriter(lexical, ROOT)
    writer.add([record(2, "s", 0, "socket"), record(3, "s", 0, "socket")])
    # The process is killed here.
    assert not lexical.is_complete(ROOT)
    assert lexical.faults(ROOT) == [("words_unreadable", "words of 1 chunks, 3 are there")]
    lexical.compact(ROOT)
    assert delete_run(lexical, "s") == 2
    assert lexical.is_complete(ROOT)
    assert lexical.faults(ROOT) == []


def test_a_merge_that_was_killed_leaves_nothing_after_the_next(
    lexical: LexicalStore, small: None
) -> None:
    for number in range(3):
        lexical.add(ROOT, [record(number, "r", number, "socket open parse x_1")])
    with pytest.raises(RunCancelled):
        lexical.compact(ROOT, _after(3))
    assert _rows(lexical) > _rows(lexical, "segment IN (SELECT id FROM segment)") > 0
    before = _rows(lexical, "segment IN (SELECT id FROM segment)")
    lexical.compact(ROOT)
    assert _rows(lexical) == _rows(lexical, "segment IN (SELECT id FROM segment)") < before


def test_a_delete_during_a_merge_wins(lexical: LexicalStore, small: None) -> None:
    for number in range(3):
        lexical.add(ROOT, [record(number, "r", number, "socket open parse x_1")])
    deleting = iter([lambda: lexical.delete_files(ROOT, ["r/parse.py"])])

    def delete_once() -> None:
        for delete in deleting:
            delete()

    lexical.compact(ROOT, delete_once)
    assert lexical.count(ROOT) == 2
    hits = lexical.search(ROOT, ["socket"], 9)
    assert {hit.id for hit in hits} == {"r:open.py:0", "r:parseHTTP.py:2"}
    lexical.compact(ROOT)
    assert lexical.search(ROOT, ["socket"], 9) == hits


def test_the_space_of_merged_segments_is_returned(
    lexical: LexicalStore, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "PAGES_AT_ONCE", 3)
    for part in range(3):
        texts = (" ".join(f"w{n}x{i}" for i in range(60)) for n in range(40))
        lexical.add(ROOT, [record(40 * part + n, "r", 0, text) for n, text in enumerate(texts)])
    lexical.compact(ROOT)
    unused = _pages(lexical, "freelist_count")
    assert unused * 8 > _pages(lexical, "page_count")
    hits = lexical.search(ROOT, ["w3x7"], 9)
    with pytest.raises(RunCancelled):
        lexical.shrink(ROOT, _after(2))
    assert 0 < _pages(lexical, "freelist_count") < unused
    lexical.shrink(ROOT)
    # What an interrupted call left may be too little to go on with.
    assert _pages(lexical, "freelist_count") * 50 <= _pages(lexical, "page_count")
    assert lexical.search(ROOT, ["w3x7"], 9) == hits != []
    assert lexical.is_intact(ROOT)


def _pages(lexical: LexicalStore, pragma: str) -> int:
    with lexical._files.reading(ROOT) as database:
        assert database is not None
        (count,) = database.execute(f"PRAGMA {pragma}").fetchone()
        return int(count)


def test_a_removed_root_is_not_made_again_by_a_merge(lexical: LexicalStore, small: None) -> None:
    for number in range(3):
        lexical.add(ROOT, [record(number, "r", number, "socket")])
    lexical.compact(ROOT, lambda: lexical.drop(ROOT))
    assert lexical.roots() == set()


def _rows(lexical: LexicalStore, where: str = "true") -> int:
    with lexical._files.reading(ROOT) as database:
        assert database is not None
        (count,) = database.execute(f"SELECT count(*) FROM posting WHERE {where}").fetchone()
        return int(count)
