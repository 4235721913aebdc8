"""What the word index keeps of chunks, and how it finds them by their words."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import pytest

from apps.code.values import ChunkedFile, Symbol
from apps.core.errors import Unavailable
from apps.index.lexical import ChunkFacts, LexicalStore, merging, scoring, words
from apps.index.lexical.encoding import decode_rows
from apps.index.lexical.frames import FRAME_ROWS, packed
from apps.index.models import SourceFile
from apps.index.types import Filters
from apps.ingest.runs.job import RunCancelled
from tests.index.records import record

ROOT = uuid4()


@pytest.fixture
def lexical(tmp_path: Path) -> Iterator[LexicalStore]:
    lexical_store = LexicalStore(tmp_path / "lexical")
    yield lexical_store
    lexical_store.close()


def delete_run(store: LexicalStore, run: str) -> int:
    """Delete the files of a run, as `record` names them."""
    files = [each for each in store.documents(ROOT) if each.startswith(f"{run}/")]
    return store.delete_files(ROOT, files)


def found(
    lexical: LexicalStore, question: str, n: int = 10, where: Filters | None = None
) -> list[str]:
    hits = lexical.search(ROOT, list(words(question)), n, where)
    return [hit.id.split(":")[1] for hit in hits]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parsing parsed", ["pars", "pars"]),
        ("HTTPAdapter", ["http", "adapter", "httpadapter"]),
        ("http_adapter", ["http", "adapter", "httpadapter"]),
        ("httpadapter", ["httpadapter"]),
        ("__init__", ["init"]),
        ("utf8", ["utf", "8", "utf8"]),
        ("Straße", ["stra", "e", "straß"]),
        ("a" * 200, ["a" * 24]),
        ("- 'x' \x00 😀", ["x"]),
        ("", []),
    ],
)
def test_a_text_falls_into_words_and_whole_identifiers(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


def test_a_chunk_is_found_by_any_of_the_words_rarest_first(lexical: LexicalStore) -> None:
    texts = {"a.py": "open the socket", "b.py": "open the door", "c.py": "shut the door"}
    lexical.add(ROOT, [record(path, text) for path, text in texts.items()])
    assert found(lexical, "socket door") == ["a.py", "b.py", "c.py"]
    assert found(lexical, "nothing here") == []
    (hit,) = lexical.search(ROOT, ["socket"], 10)
    assert hit.id == "r:a.py:0"
    assert hit.score > 0


def test_a_word_in_path_or_name_weighs_more_than_one_in_the_text(lexical: LexicalStore) -> None:
    lexical.add(
        ROOT,
        [
            record("a.py", "one retry here and some more words"),
            record("retry.py", "one thing here and some more words"),
            record("c.py", "one thing here and some more words", names="retry"),
            record("d.py", "one thing here and some more words", symbol="Retry.run"),
            *(record(f"other{n}.py", "one thing here and some more words") for n in range(9)),
        ],
    )
    assert set(found(lexical, "retry")[:3]) == {"retry.py", "c.py", "d.py"}
    assert found(lexical, "retry")[3] == "a.py"


def test_hits_tell_how_often_a_word_stands_in_a_chunk_by_the_weight_of_its_field(
    lexical: LexicalStore,
) -> None:
    lexical.add(
        ROOT,
        [
            record("retry.py", "retry " * 300 + "retry_now"),
            record("b.py", "-"),
            record("c.py", "now 5", names="retry Retrying", symbol="Retry.now"),
        ],
    )
    with lexical._files.reading(ROOT) as database:
        assert database is not None
        rows = database.execute("SELECT word, first, hits FROM posting JOIN segment").fetchall()
        namings = database.execute("SELECT identifier, first, hits FROM naming JOIN segment")
        ((first, lengths),) = database.execute("SELECT first, lengths FROM segment")
        chunks = {
            name: (decode_rows([(start, hits)], "naming").chunks - first).tolist()
            for name, start, hits in namings
        }
    words = {word: decode_rows([(start, hits)], "posting") for word, start, hits in rows}
    assert (words["retry"].chunks - first).tolist() == [0, 2]
    # Body 1, path, names and symbol 2 each; a field counts 255 at most.
    assert words["retry"].times.tolist() == [255 + 2, 2 * 2 + 2]
    assert set(words) == {"retry", "now", "retrynow", "py", "b", "c", "5"}
    assert np.frombuffer(lengths, "<u4").tolist() == [305, 2, 8]
    assert chunks == {"now": [2], "retry": [0], "retry_now": [0]}


def test_of_chunks_with_the_same_words_the_shorter_is_better(lexical: LexicalStore) -> None:
    lexical.add(ROOT, [record("a.py", "retry " + "filler " * 50), record("b.py", "retry it")])
    assert found(lexical, "retry") == ["b.py", "a.py"]


def test_a_word_that_most_of_many_chunks_have_counts_only_alone(
    lexical: LexicalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lexical.add(ROOT, [record(f"f{n}.py", f"self word{n}") for n in range(10)])
    assert len(found(lexical, "self word3", n=99)) == 10
    monkeypatch.setattr(scoring, "MIN_STOPWORD_CHUNKS", 0)
    assert found(lexical, "self word3") == ["f3.py"]
    assert len(found(lexical, "self", n=99)) == 10


def test_equal_chunks_come_in_the_order_of_writing(lexical: LexicalStore) -> None:
    for name in "dcba":
        lexical.add(ROOT, [record(f"{name}.py", "the same words")])
    assert found(lexical, "same") == ["d.py", "c.py", "b.py", "a.py"]
    assert found(lexical, "same", n=2) == ["d.py", "c.py"]
    assert found(lexical, "same", n=0) == []


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (Filters(), {"src/a.py", "src/deep/b.py", "docs/a.md", "a.py"}),
        (Filters(path="src/"), {"src/a.py", "src/deep/b.py"}),
        (Filters(path="SRC/"), set()),
        (Filters(path="*.py"), {"src/a.py", "src/deep/b.py", "a.py"}),
        (Filters(path="src/?.py"), {"src/a.py"}),
        (Filters(language="markdown"), {"docs/a.md"}),
        (Filters(path="src/", language="markdown"), set()),
        (Filters(path="src/' OR 1=1"), set()),
    ],
)
def test_filters_say_which_files_may_answer(
    lexical: LexicalStore, where: Filters, expected: set[str]
) -> None:
    paths = ("src/a.py", "src/deep/b.py", "docs/a.md", "a.py")
    lexical.add(ROOT, [record(path, "the same words") for path in paths])
    assert set(found(lexical, "same", where=where)) == expected


def test_facts_come_back_as_they_went_in(lexical: LexicalStore) -> None:
    lexical.add(ROOT, [record("src/größe.py", "x", 2, names="get put", symbol="Client.get")])
    chunk_id = "r:src/größe.py:2"
    assert lexical.facts(ROOT, [chunk_id, "r:other.py:0"]) == {
        chunk_id: ChunkFacts(
            id=chunk_id,
            source_file="r/src/größe.py",
            path="src/größe.py",
            chunk_index=2,
            start_line=21,
            end_line=29,
            symbol="Client.get",
            names=("get", "put"),
            signature="def get put",
            language="python",
            sha256=sha256("src/größe.py".encode()).hexdigest(),
            offset=200,
            length=1,
        )
    }


def test_document_frequencies_are_counted(lexical: LexicalStore) -> None:
    lexical.add(ROOT, [record("a.py", "open close"), record("b.py", "open open")])
    assert lexical.frequencies(ROOT, ["open", "clos", "never"]) == ({"open": 2, "clos": 1}, 2)


def test_facts_are_deleted_with_their_chunks(lexical: LexicalStore) -> None:
    lexical.add(ROOT, [record("a.py", "größe\n\0", 0), record("b.py", "other", run="s")])
    ids = ["r:a.py:0", "s:b.py:0", "r:none.py:0"]
    lengths = {i: facts.length for i, facts in lexical.facts(ROOT, ids).items()}
    assert lengths == {"r:a.py:0": 7, "s:b.py:0": 5}
    delete_run(lexical, "s")
    assert set(lexical.facts(ROOT, ids)) == {"r:a.py:0"}
    # Numbers may be used again.
    lexical.add(ROOT, [record("c.py", "the third")])
    facts = lexical.facts(ROOT, ["r:c.py:0"])["r:c.py:0"]
    assert (facts.path, facts.length) == ("c.py", 9)


def test_an_identifier_is_found_as_it_is_written_and_whole(lexical: LexicalStore) -> None:
    texts = ["Session()", "session = sessions", "class SessionPool", "a Session here", "Größe"]
    lexical.add(ROOT, [record("a.py", text, number) for number, text in enumerate(texts)])
    assert lexical.chunks_with_identifier(ROOT, "Session", 9) == ["r:a.py:0", "r:a.py:3"]
    assert lexical.chunks_with_identifier(ROOT, "Session", 1) == ["r:a.py:0"]
    assert lexical.chunks_with_identifier(ROOT, "session", 9) == ["r:a.py:1"]
    assert lexical.chunks_with_identifier(ROOT, "Größe", 9) == ["r:a.py:4"]
    assert lexical.chunks_with_identifier(ROOT, "Sess", 9) == []


def described(path: str, *symbols: Symbol) -> tuple[SourceFile, ChunkedFile]:
    row = SourceFile(id=uuid4(), run_id=uuid4(), path=path, language="python", since=1)
    return row, ChunkedFile(path, "", "python", (), symbols)


def test_definitions_and_outlines_come_from_the_symbols(lexical: LexicalStore) -> None:
    client = Symbol("Client", "Client", "class", 1, 9, "class Client:")
    get = Symbol("get", "Client.get", "method", 2, 4, "def get(self):")
    one, other = described("b.py", get, client), described("a.py", Symbol("GET", "GET", "x", 1, 1))
    lexical.add_symbols(ROOT, [one, other, described("c.py")])
    outline = lexical.outline(ROOT, one[0].id)
    assert [(s.path, s.kind, s.start_line, s.end_line) for s in outline] == [
        ("Client", "class", 1, 9),
        ("Client.get", "method", 2, 4),
    ]
    (found_get,) = lexical.definitions(ROOT, "get")
    assert (found_get.file_path, found_get.signature) == ("b.py", "def get(self):")
    assert found_get.source_file == str(one[0].id)
    # As written where it is; else in any case.
    assert [s.name for s in lexical.definitions(ROOT, "Get")] == ["GET", "get"]
    assert lexical.definitions(ROOT, "put") == []
    assert lexical.delete_files(ROOT, [one[0].document]) == 0
    assert lexical.outline(ROOT, one[0].id) == []
    assert [s.name for s in lexical.definitions(ROOT, "get")] == ["GET"]


def test_the_outline_of_a_long_file_is_whole_and_in_the_order_of_its_lines(
    lexical: LexicalStore,
) -> None:
    count = 2 * FRAME_ROWS + 1
    found = [Symbol(f"f{n % 100}", f"f{n}", "function", n, n) for n in range(1, count + 1)]
    long, other = described("long.py", *reversed(found)), described("a.py", found[0])
    lexical.add_symbols(ROOT, [long, other])
    outline = lexical.outline(ROOT, long[0].id)
    assert [symbol.start_line for symbol in outline] == list(range(1, count + 1))
    both = [(s.file_path, s.path) for s in lexical.definitions(ROOT, "f1")]
    assert both == [("a.py", "f1"), ("long.py", "f1"), ("long.py", "f101")]
    first = [s.path for s in lexical.symbols_beginning(ROOT, "F1", 4)]
    assert first == ["f1", "f1", "f101", "f10"]
    lexical.delete_files(ROOT, [long[0].document])
    assert [s.file_path for s in lexical.symbols_beginning(ROOT, "f", 9)] == ["a.py"]


def test_what_the_chunks_of_long_and_short_files_declare_is_read_by_their_ids(
    lexical: LexicalStore,
) -> None:
    long = [record("long.py", "x", n, names=f"n{n}", symbol="S") for n in range(FRAME_ROWS + 2)]
    short = [record(f"{name}.py", "y", names=f"one {name}") for name in ("a", "b")]
    lexical.add(ROOT, [short[0], *long, short[1]])
    wanted = [long[0], long[-1], long[FRAME_ROWS], *short]
    facts = lexical.facts(ROOT, [each.id for each in wanted])
    declared = [(f.symbol, f.names, f.signature) for f in (facts[each.id] for each in wanted)]
    assert declared == [
        (each.chunk.symbol, each.chunk.names, each.chunk.signature) for each in wanted
    ]
    lexical.delete_files(ROOT, [short[0].source_file])
    assert lexical.facts(ROOT, [long[0].id])[long[0].id].names == ("n0",)
    assert lexical.faults(ROOT) == []
    lexical.delete_files(ROOT, [long[0].source_file])
    assert lexical.facts(ROOT, [short[1].id])[short[1].id].names == ("one", "b")
    assert lexical.faults(ROOT) == []


# The magic number, the sizes that follow, and what the content is said to take: 35 TB.
HUGE = bytes.fromhex("28b52ffd") + b"\xe4" + (1 << 45).to_bytes(8, "little")


@pytest.mark.parametrize("frame", [bytes(20), HUGE], ids=["zeros", "huge"])
def test_a_damaged_frame_is_said_and_the_next_deletion_drops_the_index(
    lexical: LexicalStore, frame: bytes
) -> None:
    file = described("a.py", Symbol("get", "get", "function", 1, 1))
    lexical.add_symbols(ROOT, [file])
    with lexical._files.writing(ROOT) as database:
        database.execute("UPDATE outline SET content = ?", [frame])
    with pytest.raises(Unavailable, match="a frame is damaged"):
        lexical.definitions(ROOT, "get")
    with pytest.raises(Unavailable, match="a frame is damaged"):
        lexical.delete_files(ROOT, [file[0].document])
    assert not lexical.exists(ROOT)


@pytest.mark.parametrize(
    "damage",
    ["UPDATE symbol SET place = 64", "UPDATE symbol SET place = -64"],
    ids=["after", "before"],
)
def test_a_place_outside_of_its_frame_is_said(lexical: LexicalStore, damage: str) -> None:
    lexical.add_symbols(ROOT, [described("a.py", Symbol("get", "get", "function", 1, 1))])
    with lexical._files.writing(ROOT) as database:
        database.execute(damage)
    with pytest.raises(Unavailable, match="a frame has no row"):
        lexical.definitions(ROOT, "get")


def test_a_chunk_outside_of_its_frame_is_said(lexical: LexicalStore) -> None:
    lexical.add(ROOT, [record("a.py", "x"), record("a.py", "y", 1)])
    with lexical._files.writing(ROOT) as database:
        shorter = "UPDATE description SET content = ?, chunks = 2"
        database.execute(shorter, [packed([("", "", "")])])
    with pytest.raises(Unavailable, match="a frame has no row"):
        lexical.facts(ROOT, [record("a.py", "y", 1).id])


def test_an_id_that_is_there_already_stays_as_it_is(lexical: LexicalStore) -> None:
    lexical.add(ROOT, [record("a.py", "first")])
    lexical.add(ROOT, [record("a.py", "second"), record("b.py", "third")])
    assert found(lexical, "first third") == ["a.py", "b.py"]
    assert found(lexical, "second") == []
    assert lexical.count(ROOT) == 2


def test_deleting_a_run_leaves_the_scores_of_an_index_without_it(
    lexical: LexicalStore, tmp_path: Path
) -> None:
    old = [record(f"f{n}.py", f"retry old{n} " * n, run="old") for n in range(1, 20)]
    new = [record(f"f{n}.py", f"retry new{n} " * n, run="new") for n in range(1, 20)]
    lexical.add(ROOT, old[:9] + new[:5])
    lexical.add(ROOT, old[9:])
    lexical.add(ROOT, new[5:])
    assert delete_run(lexical, "old") == 19
    alone = LexicalStore(tmp_path / "alone")
    alone.add(ROOT, new)
    for question in ("retry", "new3 old3", "f7 py"):
        query_words = list(words(question))
        assert lexical.search(ROOT, query_words, 50) == alone.search(ROOT, query_words, 50)
    assert lexical.ids(ROOT) == {each.id for each in new}
    assert lexical.frequencies(ROOT, ["old3", "retry"]) == ({"retry": 19}, 19)
    assert lexical.chunks_with_identifier(ROOT, "old3", 9) == []
    assert delete_run(lexical, "old") == 0
    alone.close()


def test_single_files_are_deleted(lexical: LexicalStore) -> None:
    lexical.add(
        ROOT, [record(path, f"same {path}", n) for path in ("a.py", "b.py") for n in (0, 1)]
    )
    assert lexical.delete_files(ROOT, ["r/a.py", "r/nowhere.py"]) == 2
    assert lexical.ids(ROOT) == {"r:b.py:0", "r:b.py:1"}
    assert found(lexical, "same") == ["b.py", "b.py"]
    assert lexical.delete_files(ROOT, []) == 0


def test_settling_many_writes_changes_no_answer(
    lexical: LexicalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "MERGE_FACTOR", 3)
    for n in range(8):
        lexical.add(ROOT, [record(f"f{n}.py", f"retry it{n % 3} " * (n + 1), run=f"r{n % 2}")])
    lexical.delete_files(ROOT, ["r1/f3.py"])
    questions = ("retry", "it1 it2", "f5")
    before = [lexical.search(ROOT, list(words(question)), 9) for question in questions]

    def stop() -> None:
        raise RunCancelled

    with pytest.raises(RunCancelled):
        lexical.compact(ROOT, stop)
    for _ in range(2):
        assert [lexical.search(ROOT, list(words(question)), 9) for question in questions] == before
        lexical.compact(ROOT)
    assert lexical.chunks_with_identifier(ROOT, "it1", 9) == [
        "r1:f1.py:0",
        "r0:f4.py:0",
        "r1:f7.py:0",
    ]
    lexical.add(ROOT, [record("late.py", "retry late")])
    assert found(lexical, "late") == ["late.py"]
    assert delete_run(lexical, "r0") == 4
    assert lexical.ids(ROOT) == {"r1:f1.py:0", "r1:f5.py:0", "r1:f7.py:0", "r:late.py:0"}


def test_roots_do_not_see_each_other(lexical: LexicalStore) -> None:
    other = uuid4()
    lexical.add(ROOT, [record("a.py", "here")])
    lexical.add(other, [record("b.py", "here")])
    assert found(lexical, "here") == ["a.py"]
    assert lexical.roots() == {ROOT, other}
    lexical.drop(ROOT)
    assert lexical.roots() == {other}
    assert found(lexical, "here") == []
    lexical.drop(ROOT)


@pytest.mark.parametrize("verb", ["ids", "count"])
def test_a_root_without_an_index_holds_nothing(lexical: LexicalStore, verb: str) -> None:
    nobody: UUID = uuid4()
    assert not getattr(lexical, verb)(nobody)
    assert lexical.search(nobody, ["a"], 5) == []
    assert lexical.facts(nobody, ["a"]) == {}
    assert lexical.frequencies(nobody, ["a"]) == ({}, 0)
    assert lexical.chunks_with_identifier(nobody, "a", 5) == []
    assert lexical.definitions(nobody, "a") == []
    assert lexical.delete_files(nobody, ["f"]) == 0
    assert lexical.roots() == set()
