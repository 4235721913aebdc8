"""The recording file system and its replay, held against what is known of SQLite and of rename."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.power.recording import Recording, recorded

pytestmark = pytest.mark.door


def written_rows(recording: Recording, synchronous: str) -> None:
    with closing(sqlite3.connect(recording.folder / "rows", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {synchronous}")
        database.execute("CREATE TABLE row (number TEXT)")
        for number in range(10):
            database.execute("INSERT INTO row VALUES (?)", [str(number)])
            recording.promise(str(number))


def lost_rows(folder: Path, promises: set[str]) -> set[str]:
    if not promises:
        return set()
    with closing(sqlite3.connect(folder / "data" / "rows")) as database:
        try:
            return promises - {number for (number,) in database.execute("SELECT number FROM row")}
        except sqlite3.OperationalError:
            return promises  # no table


@pytest.mark.parametrize(("synchronous", "loses"), [("FULL", False), ("NORMAL", True)])
def test_sqlite_loses_commits_only_if_it_does_not_sync_them(
    tmp_path: Path, synchronous: str, loses: bool
) -> None:
    (tmp_path / "backing").mkdir()
    with recorded(tmp_path / "mount", tmp_path / "backing") as recording:
        written_rows(recording, synchronous)
    points = list(range(1, len(recording.events) + 1))
    lost = [lost_rows(*loss) for loss in recording.losses(points, 1, tmp_path)]
    assert any(lost) == loses


@pytest.mark.parametrize(
    ("is_synced", "expected"), [(True, {b"old", b"new"}), (False, {b"old", b"new", b""})]
)
def test_a_file_that_is_replaced_may_be_empty_only_if_it_was_not_synced(
    tmp_path: Path, is_synced: bool, expected: set[bytes]
) -> None:
    (tmp_path / "backing").mkdir()
    (tmp_path / "backing" / "file").write_bytes(b"old")
    with recorded(tmp_path / "mount", tmp_path / "backing") as recording:
        with (recording.folder / ".file").open("wb") as file:
            file.write(b"new")
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        (recording.folder / ".file").rename(recording.folder / "file")
    found = {
        (folder / "data" / "file").read_bytes()
        for folder, _ in recording.losses([len(recording.events)] * 40, 1, tmp_path)
    }
    assert found == expected
