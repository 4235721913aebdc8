"""What parts keep of the words of chunks, and how chunks are found by them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from math import log
from random import Random
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.code.values import Chunk
from apps.index.chunk_ids import chunk_id
from apps.index.lexical import scoring, words
from apps.index.lexical.building import Builder, Hits, Table
from apps.index.lexical.scoring import K1, WEIGHTS, B
from apps.index.mapped import files, lookups
from apps.index.mapped import words as mapped_words
from apps.index.mapped.best import best
from apps.index.mapped.codes import Codes
from apps.index.mapped.part import Part
from apps.index.mapped.part_builder import PartBuilder, ReadFile
from apps.index.mapped.root import MappedRoot
from apps.index.mapped.words import Hashes, Words, hashes_of
from apps.index.models import Root, SourceFile
from apps.index.types import ChunkRecord
from apps.retrieval.candidates import NO_HITS, Searcher
from apps.retrieval.query import SearchQuery
from tests.support.mapped import unit_vectors
from tests.support.random_parts import DIMENSION, TEXT_WORDS, Sources, piece, whole

ALL = 1_000


def file(path: str, *texts: str, names: str = "", symbol: str = "") -> ReadFile:
    """A file with a chunk of each text."""
    row = SourceFile(run_id=uuid4(), path=path, language="python", sha256="00" * 32)
    chunks = [Chunk(text, 1, 1, symbol=symbol, names=tuple(names.split())) for text in texts]
    run, document = str(row.run_id), str(row.document)
    records = [
        ChunkRecord(chunk_id(document, i), document, run, path, "python", row.sha256, i, chunk)
        for i, chunk in enumerate(chunks)
    ]
    return ReadFile(row, (), records)


def part_of(*files: ReadFile) -> Part:
    builder = PartBuilder()
    chunks = sum(len(each.chunks) for each in files)
    builder.add(files, Codes.of(unit_vectors(chunks, DIMENSION)))
    return builder.part(uuid4())


def root_of(*parts: Part) -> MappedRoot:
    return MappedRoot.of(Root(generation=1), list(map(whole, parts)))


def found(root: MappedRoot, question: str, n: int = ALL) -> list[str]:
    """The paths of the n best chunks by their words."""
    searcher = Searcher([(Root(path="/src"), root)], SearchQuery(question))
    candidates = searcher.candidates(NO_HITS, searcher.best(searcher.word_hits(n), n), {})
    return [candidates.files[place][1] for place in candidates.file_of.tolist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parsing parsed", ["pars", "pars"]),
        ("HTTPAdapter", ["http", "adapter", "httpadapter"]),
        ("http_adapter", ["http", "adapter", "httpadapter"]),
        ("httpadapter", ["httpadapter"]),
        ("__init__", ["init"]),
        ("utf8", ["utf", "8", "utf8"]),
        ("Straße", ["strass", "strasse"]),
        ("Größe", ["gross", "grosse", "groess", "groesse"]),
        ("Расчёт", ["расчет"]),
        ("未来函数", ["未来", "来函", "函数", "未来函数"]),
        ("调用foo", ["调用", "foo", "调用foo"]),
        ("在庫", ["在庫"]),
        ("주문을", ["주문", "문을", "주문을"]),
        ("a" * 200, ["a" * 24]),
        ("- 'x' \x00 😀", ["x"]),
        ("", []),
    ],
)
def test_a_text_falls_into_words_and_whole_identifiers(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


def test_a_chunk_is_found_by_any_of_the_words_rarest_first() -> None:
    texts = {"a.py": "open the socket", "b.py": "open the door", "c.py": "shut the door"}
    root = root_of(part_of(*(file(path, text) for path, text in texts.items())))
    assert found(root, "socket door") == ["a.py", "b.py", "c.py"]
    assert found(root, "nothing here") == []


def test_a_word_in_path_or_name_weighs_more_than_one_in_the_text() -> None:
    other = "one thing here and some more words"
    root = root_of(
        part_of(
            file("a.py", "one retry here and some more words"),
            file("retry.py", other),
            file("c.py", other, names="retry"),
            file("d.py", other, symbol="Retry.run"),
            *(file(f"other{n}.py", other) for n in range(9)),
        )
    )
    *first, last = found(root, "retry")
    assert (set(first), last) == ({"retry.py", "c.py", "d.py"}, "a.py")


def test_hits_tell_how_often_a_word_is_in_a_chunk_by_the_weight_of_its_field() -> None:
    builder = Builder()
    files = (
        file("retry.py", "retry " * 300 + "retry_now"),
        file("b.py", "-"),
        file("c.py", "now 5 now", names="retry Retrying", symbol="Retry.now"),
    )
    for each in files:
        builder.add(each.chunks)
    # Body 1, path, names and symbol 2 each; a field counts 255 at most.
    by_word = hits_of(builder.words)
    assert by_word.pop("retry") == {0: 255 + 2, 2: 2 * 2 + 2}
    assert by_word.pop("now") == {0: 1, 2: 2 + 2}
    assert by_word.keys() == {"retrynow", "py", "b", "c", "5"}
    assert builder.lengths.tolist() == [305, 2, 9]
    # Identifiers are those of bodies.
    assert hits_of(builder.identifiers) == {
        "retry": {0: 1},
        "retry_now": {0: 1},
        "now": {2: 1},
    }


def hits_of(table: Table) -> dict[str, dict[int, int]]:
    """Name → chunk → times."""
    hits: dict[str, dict[int, int]] = {name: {} for name in table.names}
    names = list(table.names)
    for key, chunk, times in zip(*(column.tolist() for column in table.hits()), strict=True):
        hits[names[key]][chunk] = times
    return {name: of_name for name, of_name in hits.items() if of_name}


def test_of_chunks_with_the_same_words_the_shorter_is_better() -> None:
    root = root_of(part_of(file("a.py", "retry " + "filler " * 50), file("b.py", "retry it")))
    assert found(root, "retry") == ["b.py", "a.py"]


def test_a_word_that_most_of_many_chunks_have_counts_only_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = root_of(part_of(*(file(f"f{n}.py", f"self word{n}") for n in range(10))))
    assert len(found(root, "self word3")) == 10
    monkeypatch.setattr(scoring, "MIN_STOPWORD_CHUNKS", 0)
    assert found(root, "self word3") == ["f3.py"]
    assert len(found(root, "self")) == 10


def test_equal_chunks_come_in_the_order_of_writing() -> None:
    root = root_of(
        *(part_of(*(file(f"{n}.py", "the same") for n in pair)) for pair in ("dc", "ba"))
    )
    assert found(root, "same") == ["d.py", "c.py", "b.py", "a.py"]
    assert found(root, "same", n=2) == ["d.py", "c.py"]


def test_document_frequencies_are_counted() -> None:
    root = root_of(part_of(file("a.py", "open close"), file("b.py", "open open")))
    assert root.counts(["open", "clos", "never"]) == {"open": 2, "clos": 1}
    assert root.chunks == 2


def test_an_identifier_is_found_as_it_is_written_and_whole() -> None:
    texts = ["Session()", "session = sessions", "class SessionPool", "a Session here", "Größe"]
    first = part_of(*(file(f"{place}.py", text) for place, text in enumerate(texts)))
    root = root_of(first, part_of(file("0a.py", "-", "x = Session", "Session", symbol="sessions")))

    def files(name: str) -> list[str]:
        return list(lookups.files_with_identifier(root.parts, name).values())

    assert files("Session") == ["0.py", "0a.py", "3.py"]
    assert files("session") == ["1.py"]
    assert files("sessions") == ["1.py"]
    assert files("Größe") == ["4.py"]
    assert files("Sess") == files("=Session") == files("") == []


def test_an_identifier_is_no_word_of_a_text() -> None:
    root = root_of(part_of(file("a.py", "Session"), file("b.py", "other", symbol="Session")))
    assert root.counts(["session", "Session"]) == {"session": 2}
    assert found(root, "=Session") == found(root, "session") == ["b.py", "a.py"]


def test_each_word_of_a_part_has_a_hit() -> None:
    """Numbers, keys, and names outside of bodies are no identifiers."""
    part = part_of(
        file("b2.py", "x = 0x1f", "return 25", "k" * 65, names="put", symbol="Store.put")
    )
    assert np.all(np.diff(part.words.bounds.astype(int)) > 0)


def test_a_word_with_one_hit_takes_no_bounds() -> None:
    part = part_of(file("a.py", "alpha beta gamma"), file("b.py", "beta gamma"))
    for table, single, several in (
        (part.words, {"alpha": [0], "a": [0], "b": [1]}, ("beta", "gamma", "py")),
        (part.identifiers, {"=alpha": [0]}, ("=beta", "=gamma")),
    ):
        assert (table.singles, len(table.bounds)) == (len(single), len(several) + 1)
        expected = single | dict.fromkeys(several, [0, 1]) | {"Alpha": [], "=Alpha": []}
        hits = table.find(hashes_of(expected))
        assert [table.rows[of_word].tolist() for of_word in hits] == list(expected.values())


def test_words_are_told_apart_by_all_bits_of_their_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = np.array([7 << 16 | 5, 7 << 16 | 1, 7 << 16 | 9, 8 << 16 | 1], np.uint64)
    monkeypatch.setattr(mapped_words, "hashes_of", lambda _: Hashes.of(hashes))
    keys, rows = np.array([0, 0, 1, 2, 2, 3], np.int32), np.arange(6, dtype=np.int32)
    table = Words.of("abcd", Hits(keys, rows, np.ones(6, np.uint16)))
    absent = np.array([7 << 16 | 2, 6 << 16 | 1, 8 << 16, 9 << 16 | 1], np.uint64)
    hits = table.find(Hashes.of(np.concatenate([hashes, absent])))
    rows_of = [table.rows[each].tolist() for each in hits]
    assert rows_of == [[0, 1], [2], [3, 4], [5], [], [], [], []]


# --- as the formula says --------------------------------------------------------------------------


def weighted(record: ChunkRecord) -> tuple[Counter[str], int]:
    """The weighted tf of each word of a chunk, and how many words it has."""
    chunk = record.chunk
    fields = {"body": chunk.text, "path": record.path}
    fields |= {"names": " ".join(chunk.names), "symbol": chunk.symbol}
    tf: Counter[str] = Counter()
    for field, text in fields.items():
        for word, times in Counter(words(text)).items():
            tf[word] += int(WEIGHTS[field]) * min(times, 255)
    return tf, sum(len(list(words(text))) for text in fields.values())


class Formula:
    """BM25F (`lexical.scoring`), chunk by chunk."""

    def __init__(self, records: Iterable[ChunkRecord]) -> None:
        self.chunks = {record.id: weighted(record) for record in records}

    def count(self, word: str) -> int:
        return sum(word in tf for tf, _ in self.chunks.values())

    def scores(self, query: Sequence[str]) -> dict[str, float]:
        mean = sum(length for _, length in self.chunks.values()) / max(len(self.chunks), 1)
        scores: Counter[str] = Counter()
        for word in query:
            n = self.count(word)
            idf = log(1 + (len(self.chunks) - n + 0.5) / (n + 0.5))
            for key, (tf, length) in self.chunks.items():
                norm = K1 * (1 - B + B * length / mean)
                scores[key] += idf * tf[word] * (K1 + 1) / (tf[word] + norm)
        return {key: score for key, score in scores.items() if score}


@given(st.integers(0, 1 << 32))
def test_random_parts_answer_as_the_formula_says_for_their_live_chunks(seed: int) -> None:
    random = Random(seed)
    sources = Sources(random)
    parts = [
        [sources.source(random.choice((0, 1, 2, 9)), 0) for _ in range(random.randint(1, 6))]
        for _ in range(random.randint(1, 3))
    ]
    live = [[random.random() < 0.7 for _ in part] for part in parts]
    pieces = [piece(*each) for each in zip(parts, live, strict=True)]
    root = MappedRoot.of(Root(generation=1), pieces)
    formula = Formula(
        record
        for part, mask in zip(parts, live, strict=True)
        for source, is_live in zip(part, mask, strict=True)
        for record in source.chunks
        if is_live
    )
    assert root.chunks == len(formula.chunks)
    names = sorted({word for name in (*TEXT_WORDS, "py", "never") for word in words(name)})
    assert root.counts(names) == {word: n for word in names if (n := formula.count(word))}
    query = random.sample(names, 4)
    rows, scores, _ = best(root.hits(root.find(query)), [part.live for part in root.parts], ALL)
    ids = [text[0] for part in root.parts for text in part.part.chunks(range(len(part)))]
    by_id = {ids[row]: score for row, score in zip(rows.tolist(), scores.tolist(), strict=True)}
    assert by_id == pytest.approx(formula.scores(query), rel=1e-4)


SAMPLE = """
parsing parsed HTTPAdapter http_adapter __init__ utf8 Straße getURLsOf x1 running libraries
DatabaseError connections retry_count_2 the_quick-brown fox's naïve Ωmega 日本語 0x1f camelCase
"""


def test_a_change_of_the_splitter_raises_the_version_of_the_parts() -> None:
    """A part has the words of the splitter that wrote it: other queries would miss them."""
    digest = sha256(" ".join(words(SAMPLE)).encode()).hexdigest()[:16]
    assert (files.VERSION, digest) == (7, "9389a6587b14bcac")
