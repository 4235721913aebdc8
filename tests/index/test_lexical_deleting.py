"""Chunks that are taken out of a word index leave it as if they had never been there."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

from apps.code.values import Chunk
from apps.index.lexical import LexicalStore, schema, segments
from apps.index.lexical.encoding import decode_rows
from apps.index.texts import TextStore
from apps.index.types import ChunkRecord

ROOT = uuid4()
FILES = 40


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TextStore]:
    """An empty text store."""
    made = TextStore(tmp_path / "texts")
    monkeypatch.setattr(segments, "get_texts", lambda: made)
    yield made
    made.close()


HEAD = "größe of the file\n"  # before each chunk


def file(number: int) -> ChunkRecord:
    """Every word of it stands in other files too, but for one in each field."""
    text = f"def body_{number}(shared, third_{number % 3}): größe{number} 'x' * {number}"
    return ChunkRecord(
        id=f"file {number}:0",
        source_file=f"file {number}",
        run_id="r",
        path=f"common/path_{number}.py",
        language="python",
        sha256=sha256(text.encode()).hexdigest(),
        index=0,
        chunk=Chunk(
            text,
            2,
            2,
            symbol=f"Shared.symbol_{number}",
            names=(f"name_{number}", "common"),
            offset=len(HEAD),
        ),
    )


def add_texts(texts: TextStore) -> None:
    texts.add({each.sha256: HEAD + each.chunk.text for each in map(file, range(FILES))})


def written(folder: Path, files: Iterable[int]) -> LexicalStore:
    lexical = LexicalStore(folder)
    lexical.add(ROOT, [file(number) for number in files])
    return lexical


def postings(folder: Path) -> dict[str, dict[str, set[str]]]:
    """Table → word or identifier → the files of its chunks, by the blobs themselves."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    with closing(sqlite3.connect(next(folder.glob("*.sqlite3")))) as database:
        ids = dict(database.execute("SELECT number, path FROM chunk JOIN file ON id = file"))
        for table, key in schema.KEYS.items():
            rows = f"SELECT {key}, chunks, first, hits FROM {table} JOIN segment ON segment = id"
            for name, size, first, hits in database.execute(rows):
                numbers = decode_rows([(first, hits)], table).chunks.tolist()
                assert len(numbers) == size
                found[table][name].update(ids[number] for number in numbers)
    return found


# Of few files the words are counted again, for many all that is written is looked through. So it is
# where a text is missing.
@pytest.mark.parametrize("deleted", [range(7, 9), range(3, 33)], ids=["few", "many"])
@pytest.mark.parametrize("stored", ["texts", "no texts", "broken texts"])
def test_deleted_files_leave_no_word_and_no_identifier(
    tmp_path: Path, texts: TextStore, deleted: range, stored: str
) -> None:
    if stored == "texts":
        add_texts(texts)
    elif stored == "broken texts":
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts/index.sqlite3").write_bytes(b"no database at all" * 1_000)
    remaining = [number for number in range(FILES) if number not in deleted]
    lexical = written(tmp_path / "all", range(FILES))
    assert lexical.delete_files(ROOT, [f"file {number}" for number in deleted]) == len(deleted)
    alone = written(tmp_path / "alone", remaining)
    assert postings(tmp_path / "all") == postings(tmp_path / "alone")
    query_words = ["shared", "common", "third", "name", f"path{deleted[0]}", "größe39"]
    assert lexical.search(ROOT, query_words, FILES) == alone.search(ROOT, query_words, FILES)
    assert lexical.frequencies(ROOT, query_words) == alone.frequencies(ROOT, query_words)
    for each in (lexical, alone):
        each.close()


def test_deleting_twice_changes_nothing(tmp_path: Path, texts: TextStore) -> None:
    add_texts(texts)
    lexical = written(tmp_path / "all", range(FILES))
    for number in (5, 6):
        lexical.delete_files(ROOT, [f"file {number}"])
    alone = written(tmp_path / "alone", [n for n in range(FILES) if n not in (5, 6)])
    assert postings(tmp_path / "all") == postings(tmp_path / "alone")
    for each in (lexical, alone):
        each.close()
