"""The word index's files: broken, old, locked, full or gone, and many at once."""

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from apps.core.data import sqlite_files
from apps.core.errors import Unavailable
from apps.index.lexical import LexicalStore, schema, segments
from apps.index.types import ChunkRecord
from tests.index.records import record
from tests.support.damage import spoil

ROOT = uuid4()
HOME = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lexical"


@pytest.fixture
def lexical(folder: Path) -> Iterator[LexicalStore]:
    lexical_store = LexicalStore(folder)
    yield lexical_store
    lexical_store.close()


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / f"{ROOT.hex}.sqlite3"


def some(count: int, run: str = "r") -> list[ChunkRecord]:
    return [record(f"f{n}.py", f"retry it{n}", run=run) for n in range(count)]


def test_a_file_that_is_no_index_raises_and_the_next_write_replaces_it(
    lexical: LexicalStore, path: Path
) -> None:
    lexical.add(ROOT, some(3))
    assert lexical.is_intact(ROOT)
    spoil(path)
    assert not lexical.is_intact(ROOT)
    with pytest.raises(Unavailable, match="file is not a database") as caught:
        lexical.search(ROOT, ["retry"], 5)
    assert caught.value.code == "LEXICAL_UNAVAILABLE"
    lexical.add(ROOT, some(2))
    assert lexical.is_intact(ROOT)
    assert lexical.count(ROOT) == 2


def test_a_file_that_passed_is_read_again_when_it_was_written(
    lexical: LexicalStore, path: Path
) -> None:
    lexical.add(ROOT, some(2_000))
    lexical.close()
    facts = path.stat()
    assert lexical.is_intact(ROOT, since_written=True)
    lexical.close()
    with path.open("r+b") as file:
        for page in range(4_096, facts.st_size, 4_096):
            file.seek(page)
            file.write(b"\xff" * 64)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert lexical.is_intact(ROOT, since_written=True), "as if the disk had changed it"
    assert not lexical.is_intact(ROOT)
    path.touch()
    assert not lexical.is_intact(ROOT, since_written=True)


def test_an_index_with_a_broken_page_is_deleted_by_the_write_that_meets_it(
    lexical: LexicalStore, path: Path
) -> None:
    lexical.add(ROOT, some(2_000))
    lexical.close()
    whole = bytearray(path.read_bytes())
    for page in range(4_096, len(whole), 4_096):
        whole[page : page + 64] = b"\xff" * 64
    path.write_bytes(whole)
    assert not lexical.is_intact(ROOT)
    with pytest.raises(Unavailable, match="malformed"):
        lexical.delete_files(ROOT, [each.source_file for each in some(2)])
    assert not path.exists()
    lexical.add(ROOT, some(2))
    assert lexical.is_intact(ROOT)


def test_an_index_of_another_version_is_empty_and_is_replaced(
    lexical: LexicalStore, path: Path
) -> None:
    lexical.add(ROOT, some(3))
    lexical.close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    assert lexical.search(ROOT, ["retry"], 5) == []
    assert lexical.count(ROOT) == 0
    assert not lexical.is_intact(ROOT)
    lexical.add(ROOT, some(2))
    assert lexical.count(ROOT) == 2


def test_the_version_depends_on_the_tables_and_the_splitter() -> None:
    assert 0 < schema.VERSION < 2**31


def test_readers_continue_when_the_file_is_replaced(lexical: LexicalStore) -> None:
    lexical.add(ROOT, some(3))
    with lexical._files.reading(ROOT) as before:
        assert before is not None
        LexicalStore(lexical._files.folder).drop(ROOT)
        # Who is reading keeps what was there; who comes now finds nothing.
        assert before.execute("SELECT count(*) FROM chunk").fetchone() == (3,)
        assert lexical.count(ROOT) == 0
        lexical.add(ROOT, some(1))
    assert lexical.count(ROOT) == 1
    assert [hit.id for hit in lexical.search(ROOT, ["retry"], 9)] == ["r:f0.py:0"]


@pytest.mark.fault("The disk is full")
def test_a_write_that_fails_leaves_nothing(
    lexical: LexicalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lexical.add(ROOT, some(3, "first"))

    def full(*args: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(segments, "insert_segment", full)
        with pytest.raises(Unavailable, match="database or disk is full"):
            lexical.add(ROOT, some(3, "second"))
    assert lexical.count(ROOT) == 3
    lexical.add(ROOT, some(3, "second"))
    assert lexical.count(ROOT) == 6


@pytest.mark.fault("The disk is full")
def test_a_folder_that_cannot_be_written_is_told(
    lexical: LexicalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*args: object, **options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(Unavailable, match="Read-only file system"):
        lexical.add(ROOT, some(1))


def test_a_locked_file_raises_after_a_wait(
    lexical: LexicalStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_files, "BUSY_SECONDS", 0.01)
    lexical.add(ROOT, some(1, "first"))
    lexical.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="database is locked"):
        lexical.add(ROOT, some(1, "second"))
    # Reading does not wait.
    assert lexical.count(ROOT) == 1
    other.execute("ROLLBACK")
    other.close()
    lexical.add(ROOT, some(1, "second"))
    assert lexical.count(ROOT) == 2


def test_an_index_is_created_while_another_process_creates_it(
    lexical: LexicalStore, path: Path
) -> None:
    """SQLite does not wait for a lock when it changes the journal mode."""
    path.parent.mkdir()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    lexical.add(ROOT, some(2))
    other.close()
    assert lexical.count(ROOT) == 2
    assert lexical.is_intact(ROOT)
    assert [each.name for each in path.parent.glob("*.new*")] == []


def test_a_kill_while_an_index_is_created_leaves_nothing_in_the_way(
    lexical: LexicalStore, path: Path
) -> None:
    path.parent.mkdir()
    path.with_suffix(".new").write_bytes(b"half of it")
    lexical.drop(ROOT)
    assert list(path.parent.iterdir()) == []
    path.with_suffix(".new").write_bytes(b"half of it")
    lexical.add(ROOT, some(2))
    assert lexical.count(ROOT) == 2


def test_many_read_while_one_writes_and_each_sees_whole_writes(lexical: LexicalStore) -> None:
    lexical.add(ROOT, some(10, "r0"))
    done = threading.Event()

    def read(_: int) -> set[int]:
        counts = set()
        while not done.is_set():
            counts.add(len(lexical.search(ROOT, ["retry"], 1_000)))
        return counts

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read, n) for n in range(4)]
        for number in range(1, 10):
            lexical.add(ROOT, some(10, f"r{number}"))
        done.set()
        counts = set().union(*(reader.result() for reader in readers))
    assert counts <= {10 * number for number in range(1, 11)}
    assert len(lexical.search(ROOT, ["retry"], 1_000)) == 100


@pytest.mark.door
def test_another_process_reads_what_this_one_writes(lexical: LexicalStore, folder: Path) -> None:
    lexical.add(ROOT, some(3))
    script = (
        "import sys, uuid, pathlib\n"
        "import django; django.setup()\n"
        "from apps.index.lexical import LexicalStore\n"
        "store = LexicalStore(pathlib.Path(sys.argv[1]))\n"
        "print(*sorted(hit.id for hit in store.search(uuid.UUID(sys.argv[2]), ['retry'], 9)))\n"
    )
    environ = os.environ | {"DJANGO_SETTINGS_MODULE": "codeinfo.settings"}
    command = [sys.executable, "-c", script, str(folder), str(ROOT)]
    done = subprocess.run(
        command, cwd=HOME, env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["r:f0.py:0", "r:f1.py:0", "r:f2.py:0"]


def test_a_rebuilt_index_replaces_the_old_one_only_when_complete(
    lexical: LexicalStore, folder: Path
) -> None:
    lexical.add(ROOT, some(3, "old"))
    with pytest.raises(ZeroDivisionError), lexical.rebuilding(ROOT) as fresh:
        fresh.add(ROOT, some(1, "new"))
        raise ZeroDivisionError
    assert lexical.count(ROOT) == 3
    with lexical.rebuilding(ROOT) as fresh:
        assert fresh.count(ROOT) == 0
        fresh.add(ROOT, some(2, "new"))
        assert lexical.count(ROOT) == 3
    assert lexical.ids(ROOT) == {"new:f0.py:0", "new:f1.py:0"}
    assert not list((folder / "rebuild").iterdir())


def test_an_unfinished_rebuild_is_dropped_with_its_root(lexical: LexicalStore) -> None:
    with pytest.raises(ZeroDivisionError), lexical.rebuilding(ROOT) as fresh:
        fresh.add(ROOT, some(1))
        raise ZeroDivisionError
    assert lexical.roots() == {ROOT}
    lexical.drop(ROOT)
    assert lexical.roots() == set()
