"""The files of the text store: damaged, cut, deleted, half written, of several processes."""

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from apps.core.errors import Unavailable
from apps.core.system import posix
from apps.index.texts import TextStore
from apps.index.texts.segments import BLOCK_BYTES, Block, Segments, SegmentWriter
from tests.house.sources import HOME
from tests.index.texts import Texts, folder, keyed, named, noise, reopened, segments_in, texts

__all__ = ["folder", "reopened", "texts"]

Reopen = Callable[[], TextStore]
FIRST = keyed(*(noise(2_250, n) for n in range(7)))  # fills a block
SECOND = keyed(*(f"def other_{n}(): ...\n" for n in range(50)))


@pytest.fixture
def filled(texts: TextStore) -> TextStore:
    """A store of two blocks in one segment."""
    texts.add(FIRST)
    texts.add(SECOND)
    blocks = {place.block for place in texts.index.places([*FIRST, *SECOND]).values()}
    assert len(blocks) == 2
    return texts


def block_of(texts: TextStore, some: Texts) -> Block:
    return texts.index.places([next(iter(some))])[next(iter(some))].block


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 0xFF]))


# --- segments -------------------------------------------------------------------------------------


def test_a_damaged_block_is_missing_until_its_texts_are_added_again(
    filled: TextStore, folder: Path, reopened: Reopen
) -> None:
    (segment,) = segments_in(folder)
    block = block_of(filled, FIRST)
    flip(segment, block.offset + block.size // 2)
    store = reopened()
    assert store.read(FIRST | SECOND) == SECOND
    assert sorted(store.missing(FIRST | SECOND)) == sorted(FIRST)
    store.add(FIRST | SECOND)
    assert store.read(FIRST | SECOND) == FIRST | SECOND
    assert store.missing(FIRST | SECOND) == []
    assert reopened().read(FIRST) == FIRST


def test_a_flipped_byte_never_changes_a_text(folder: Path, reopened: Reopen) -> None:
    some = keyed("def one(): ...\n", "größe\n", "x" * 300)
    store = reopened()
    store.add(some)
    store.close()
    (segment,) = segments_in(folder)
    for at in range(segment.stat().st_size):
        flip(segment, at)
        found = store.read(some)
        assert found in ({}, some), at
        store.close()
        flip(segment, at)


def test_a_damaged_block_is_dropped_when_its_segment_is_written_again(
    filled: TextStore, folder: Path, reopened: Reopen
) -> None:
    (segment,) = segments_in(folder)
    flip(segment, block_of(filled, FIRST).offset + 100)
    store = reopened()
    kept = dict(list(SECOND.items())[:20]) | dict(list(FIRST.items())[:1])
    store.collect(named(kept))
    readable = kept.keys() & SECOND.keys()
    assert store.read(FIRST | SECOND).keys() == readable
    assert segment not in segments_in(folder)
    assert sorted(store.missing(kept)) == sorted(kept.keys() - readable)
    store.add(kept)
    assert store.read(kept) == kept


def test_a_block_that_cannot_be_read_stays_while_the_others_are_moved(
    filled: TextStore, folder: Path, monkeypatch: pytest.MonkeyPatch, reopened: Reopen
) -> None:
    """The disk may answer again: the text is added from its file, or found here later."""
    bad = block_of(filled, FIRST)
    kept = dict(list(SECOND.items())[:20]) | dict(list(FIRST.items())[:1])
    read = os.pread

    def failing(file: int, size: int, offset: int) -> bytes:
        if (offset, size) == (bad.offset, bad.size):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(file, size, offset)

    store = reopened()
    with monkeypatch.context() as patch:
        patch.setattr(posix, "pread", failing)
        assert store.collect(named(kept)) == len(FIRST | SECOND) - len(kept)
        assert store.read(kept).keys() == kept.keys() & SECOND.keys()
        assert sorted(store.missing(kept)) == sorted(kept.keys() & FIRST.keys())
        assert store.collect(named(kept)) == 0
    assert reopened().read(kept) == kept
    store = reopened()
    store.collect(named(kept))
    assert store.read(kept) == kept
    assert store.segments.path(bad.segment) not in segments_in(folder)


def test_a_segment_that_was_cut_lacks_its_last_texts(
    filled: TextStore, folder: Path, reopened: Reopen
) -> None:
    (segment,) = segments_in(folder)
    os.truncate(segment, block_of(filled, SECOND).offset + 3)
    store = reopened()
    assert sorted(store.missing(FIRST | SECOND)) == sorted(SECOND)
    assert store.read(FIRST | SECOND) == FIRST
    store.add(SECOND)
    assert store.read(FIRST | SECOND) == FIRST | SECOND


def test_a_segment_that_was_deleted_lacks_all_texts(
    filled: TextStore, folder: Path, reopened: Reopen
) -> None:
    (segment,) = segments_in(folder)
    segment.unlink()
    store = reopened()
    assert sorted(store.missing(FIRST | SECOND)) == sorted(FIRST | SECOND)
    assert store.read(FIRST | SECOND) == {}
    store.add(FIRST)
    assert store.read(FIRST | SECOND) == FIRST
    assert store.collect(named(FIRST)) == len(SECOND)
    assert store.missing(FIRST) == []


def test_a_link_in_place_of_a_segment_is_not_followed(
    filled: TextStore, folder: Path, tmp_path: Path, reopened: Reopen
) -> None:
    (segment,) = segments_in(folder)
    segment.rename(tmp_path / "elsewhere")
    segment.symlink_to(tmp_path / "elsewhere")
    assert reopened().read(FIRST) == {}


# --- writes that fail -----------------------------------------------------------------------------


def test_a_write_that_fails_before_its_commit_leaves_nothing(
    filled: TextStore, folder: Path, monkeypatch: pytest.MonkeyPatch, reopened: Reopen
) -> None:
    """At every point between the blocks and the commit."""
    new = keyed(*(noise(BLOCK_BYTES, n) for n in range(100, 104)))
    write = TextStore.write
    for blocks in range(5):
        left = iter(range(blocks))

        def failing(self: TextStore, *args: object, left: Iterator[int] = left) -> None:
            write(self, *args)  # type: ignore[arg-type]
            if next(left, None) is None:
                raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(TextStore, "write", failing)
            with suppress(ZeroDivisionError):
                filled.add(new)
        if blocks < 4:
            assert filled.read(new) == {}
            assert sorted(filled.missing(new)) == sorted(new)
        assert filled.read(FIRST | SECOND) == FIRST | SECOND
    filled.add(new)
    everything = FIRST | SECOND | new
    assert filled.read(everything) == reopened().read(everything) == everything
    filled.collect(named(everything))
    assert filled.read(everything) == reopened().read(everything) == everything


def test_a_disk_that_is_full_leaves_what_was_there(
    filled: TextStore, monkeypatch: pytest.MonkeyPatch, reopened: Reopen
) -> None:
    write = os.pwrite

    def full(file: int, data: bytes, offset: int) -> int:
        """A part of a block is written, then no more."""
        if len(data) > 5_000:
            return write(file, data[:5_000], offset)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    new = keyed(noise(9_000, 100), noise(100, 101))
    with monkeypatch.context() as patch:
        patch.setattr(posix, "pwrite", full)
        with pytest.raises(Unavailable, match="No space left") as caught:
            filled.add(new)
    assert caught.value.code == "TEXTS_UNAVAILABLE"
    assert filled.read(FIRST | SECOND | new) == FIRST | SECOND
    filled.add(new)
    everything = FIRST | SECOND | new
    assert filled.read(everything) == reopened().read(everything) == everything


def test_texts_added_before_a_failure_are_made_durable(
    filled: TextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that begins again finds its first texts, and adds only the others."""
    synced: list[int] = []
    sync = SegmentWriter.sync

    def noted(self: SegmentWriter) -> None:
        synced.append(self.segment)
        sync(self)

    def fails(*args: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(SegmentWriter, "sync", noted)
    with monkeypatch.context() as patch:
        patch.setattr(SegmentWriter, "write", fails)
        with pytest.raises(Unavailable):
            filled.add(keyed("more"))
    filled.add(FIRST | SECOND)
    filled.sync()
    assert block_of(filled, FIRST).segment in synced


def test_texts_of_a_run_are_made_durable_though_a_sweep_came_between(
    filled: TextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = SegmentWriter.sync

    def noted(self: SegmentWriter) -> None:
        synced.append(self.segment)
        sync(self)

    monkeypatch.setattr(SegmentWriter, "sync", noted)
    filled.collect(named(FIRST, SECOND))
    filled.sync()
    assert block_of(filled, FIRST).segment in synced


def test_texts_that_were_made_durable_do_not_depend_on_the_log_of_the_index(
    filled: TextStore, folder: Path, tmp_path: Path
) -> None:
    """A power cut may lose the end of the write-ahead log."""
    filled.sync()
    copy = tmp_path / "after"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
    store = TextStore(copy)
    assert store.read(FIRST | SECOND) == FIRST | SECOND
    store.close()


# --- the index ------------------------------------------------------------------------------------


def index_of(folder: Path) -> Path:
    return folder / "index.sqlite3"


def overwrite(index: Path) -> None:
    for ending in ("-wal", "-shm"):
        index.with_name(index.name + ending).unlink(missing_ok=True)
    index.write_bytes(b"no database at all, but long enough to be read as one" * 100)


def break_pages(index: Path) -> None:
    """Its first pages are whole, so it opens, and some texts are found."""
    with closing(sqlite3.connect(index)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray(index.read_bytes())
    assert len(whole) > 8 * 4_096
    for page in range(len(whole) // 8_192 * 4_096, len(whole), 4_096):
        whole[page : page + 64] = b"\xff" * 64
    index.write_bytes(whole)


@pytest.mark.parametrize("harm", [overwrite, break_pages])
def test_a_broken_index_is_told_and_after_a_repair_its_texts_are_added_again(
    folder: Path, reopened: Reopen, harm: Callable[[Path], None]
) -> None:
    some = FIRST | keyed(*(f"text {n}" for n in range(2_000)))
    store = reopened()
    store.add(some)
    assert not store.repair()
    store.close()
    before = segments_in(folder)
    harm(index_of(folder))
    for verb in (store.read, store.missing):
        with pytest.raises(Unavailable) as caught:
            verb(some)
        assert caught.value.code == "TEXTS_UNAVAILABLE"

    assert store.repair()
    assert not store.repair()
    assert (store.read(some), len(store.keys())) == ({}, 0)
    assert sorted(store.missing(some)) == sorted(some)
    store.add(some)
    assert store.read(some) == reopened().read(some) == some
    # No file of before is written to, or taken for one of now.
    assert len(segments_in(folder)) > len(before)
    store.collect(named(some))
    assert not set(before) & set(segments_in(folder))
    assert store.read(some) == some


def test_an_index_that_was_deleted_names_no_file_twice(folder: Path, reopened: Reopen) -> None:
    seen: set[Path] = set()
    store = reopened()
    for round_ in range(20):
        store.add(keyed(f"round {round_}"))
        new = set(segments_in(folder)) - seen
        assert len(new) == 1
        seen |= new
        for path in folder.glob("index.sqlite3*"):
            path.unlink()
    assert store.read(keyed("round 0")) == {}
    store.add(keyed("last"))
    assert store.read(keyed("last")) == keyed("last")
    store.collect(named(keyed("last")))
    assert len(segments_in(folder)) == 1


def test_an_index_without_tables_is_completed(folder: Path, reopened: Reopen) -> None:
    """A kill while it was created: it has its journal mode, and no table yet."""
    folder.mkdir()
    with closing(sqlite3.connect(index_of(folder))) as database:
        database.execute("PRAGMA journal_mode = WAL")
    assert index_of(folder).stat().st_size
    store = reopened()
    assert store.read(SECOND) == {}
    assert sorted(store.missing(SECOND)) == sorted(SECOND)
    assert not store.repair()
    store.add(SECOND)
    assert store.read(SECOND) == SECOND


def test_a_folder_that_cannot_be_written_is_told(
    texts: TextStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*args: object, **options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(Unavailable, match="Read-only file system"):
        texts.add(SECOND)


# --- several processes ----------------------------------------------------------------------------

ADD = """
import django; django.setup()
import sys
from pathlib import Path
from apps.index.texts import TextStore
from tests.index.texts import keyed
for folder in sys.stdin:
    store = TextStore(Path(folder.strip()))
    for n in range(20):
        mine = keyed(f"own text {n} of {sys.argv[1]}")
        store.add(mine | keyed(f"text {n} of all"))
        assert store.read(mine) == mine
        if n % 9 == 0:
            store.sync()
    store.close()
    print("done", flush=True)
"""


@pytest.mark.door
def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    """They also create the store at once, again and again."""
    folders = [tmp_path / str(number) for number in range(30)]
    with ExitStack() as stack:
        adding = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", ADD, str(number)],
                    cwd=HOME,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(3)
        ]
        for folder in folders:
            for process in adding:
                assert process.stdin
                process.stdin.write(f"{folder}\n")
                process.stdin.flush()
            assert [process.stdout and process.stdout.readline() for process in adding] == [
                "done\n"
            ] * 3
        for process in adding:
            process.communicate()
        assert [process.returncode for process in adding] == [0, 0, 0]
    expected = keyed(
        *(f"own text {n} of {number}" for number in range(3) for n in range(20)),
        *(f"text {n} of all" for n in range(20)),
    )
    for folder in folders:
        store = TextStore(folder)
        assert store.read(expected) == expected
        assert len(store.keys()) == len(expected)
        store.collect(named(expected))
        assert store.read(expected) == expected
        store.close()


MERGED = """
import django; django.setup()
import sys
from pathlib import Path
from apps.index.texts import TextStore
store = TextStore(Path(sys.argv[1]))
print(store.collect(lambda keys: set(keys) & set(sys.argv[2:])))
"""


@pytest.mark.door
def test_a_process_goes_on_adding_after_another_merged_its_segment(
    texts: TextStore, folder: Path
) -> None:
    kept, dead = keyed("kept"), keyed(noise(9_000))
    texts.add(kept | dead)
    assert texts.read(kept) == kept
    command = [sys.executable, "-c", MERGED, folder, *kept]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
    texts.add(keyed("more"))
    everything = kept | keyed("more")
    assert texts.read(everything | dead) == everything
    assert texts.missing(dead) == list(dead)
    assert texts.collect(named(everything)) == 0


KILLED = """
import django; django.setup()
import os, signal, sys
from pathlib import Path
from apps.index.texts import TextStore
from tests.index.texts import keyed, noise
write, left = TextStore.write, int(sys.argv[2])
def killed(self, *args):
    global left
    write(self, *args)
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
TextStore.write = killed
store = TextStore(Path(sys.argv[1]))
store.add(keyed(*(noise(70_000, n) for n in range(200, 203))))
"""


@pytest.mark.kill
@pytest.mark.parametrize("blocks", [0, 2])
def test_a_process_that_is_killed_before_its_commit_leaves_nothing(
    filled: TextStore, folder: Path, reopened: Reopen, blocks: int
) -> None:
    filled.sync()
    before = segments_in(folder)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, folder, str(blocks)], cwd=HOME, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(segments_in(folder)) == len(before) + 1
    store = reopened()
    new = keyed(*(noise(70_000, n) for n in range(200, 203)))
    assert sorted(store.missing(new)) == sorted(new)
    assert store.read(FIRST | SECOND | new) == FIRST | SECOND
    store.collect(named(FIRST, SECOND))
    assert segments_in(folder) == before
    store.add(new)
    assert store.read(FIRST | SECOND | new) == FIRST | SECOND | new


@pytest.mark.parametrize("at", [0, 4, 9, 13, 900, -3])
def test_a_large_text_that_is_damaged_is_missing_as_a_whole(
    texts: TextStore, folder: Path, at: int
) -> None:
    large = keyed(noise(90_000, 1))
    texts.add(large)
    (place,) = texts.places(large).values()
    (segment,) = segments_in(folder)
    data = bytearray(segment.read_bytes())
    data[at] ^= 0x55
    segment.write_bytes(data)
    assert texts.read_bytes(large) == {}
    assert Segments(texts.folder).read_parts(
        [(place.block, [(place.start, place.start + place.size)])]
    ) == [None]
    texts.add(large)
    assert texts.read(large) == large
