"""The text store: the text of each ingested file, once for all roots.

A text is found by the SHA-256 of the file's bytes (`SourceFile.sha256`). The texts are in segment
files; an index tells where. Rows of SourceFile are saved before their texts are added, and
`collect` deletes only texts that no row names, while no other text can be added. So a text that a
row names is never deleted, whatever runs at the same time.
"""

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import randbits

import zstandard

from apps.core.concurrency.per_process import PerProcess
from apps.core.config import config
from apps.core.values.slices import grouped, slices
from apps.index.texts.segments import BLOCK_BYTES, Block, Segments, SegmentWriter
from apps.index.texts.text_index import KEYS_AT_ONCE, Place, TextIndex, text_errors
from apps.index.types import Check, never_cancelled

# A segment that is larger is closed: merging copies no more than this at once.
SEGMENT_BYTES = 64 << 20
# Segments with less are merged when there are MAX_SMALL of them.
SMALL_BYTES, MAX_SMALL = 4 << 20, 16
# A segment is written again when less than this part of its texts is still named by rows.
LIVE_PART = 0.5

# Returns which of some keys a row names.
Referenced = Callable[[Sequence[str]], Collection[str]]


class TextStore:
    """Reads and adds texts. Thread-safe, and any number of processes may read while one writes.

    Raises Unavailable TEXTS_UNAVAILABLE. Keys are SHA-256 digests in hex.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = TextIndex(folder / "index.sqlite3")
        self.segments = Segments(folder)
        self._writing = threading.Lock()
        self._writer: SegmentWriter | None = None
        self.moves = 0  # texts that were not where a caller has looked
        # Blocks that could not be read. Their texts count as missing.
        self._damaged: set[Block] = set()

    # --- reading ---

    def read(self, keys: Iterable[str]) -> dict[str, str]:
        """Return key → text. Texts that are missing or damaged are left out."""
        return {key: data.decode() for key, data in self.read_bytes(keys).items()}

    def read_bytes(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return key → text in UTF-8, as `read` does."""
        texts: dict[str, bytes] = {}
        for part in slices(keys, KEYS_AT_ONCE):
            texts |= self.read_at(self.places(part))
        return texts

    def places(self, keys: Iterable[str]) -> dict[str, Place]:
        """Return key → where its text is now. Keys without a text are left out."""
        with text_errors():
            batches = (self.index.places(part) for part in slices(keys, KEYS_AT_ONCE))
            return {key: place for batch in batches for key, place in batch.items()}

    def each_place(self) -> list[tuple[bytes, int, int, int, int, int]]:
        """As `TextIndex.each_place`: 100,000 in a third of a second."""
        with text_errors():
            return self.index.each_place()

    def read_at(self, places: Mapping[str, Place]) -> dict[str, bytes]:
        """Return key → text in UTF-8, as `read` does. `places` may be old; `moves` changes when
        they are better looked up again."""
        texts: dict[str, bytes] = {}
        with text_errors():
            blocks = self.segments.read_all(dict.fromkeys(p.block for p in places.values()))
            for key, place in places.items():
                if (block := blocks.get(place.block)) is not None:
                    texts[key] = block[place.start : place.start + place.size]
                elif (data := self._data(key, place)) is not None:
                    texts[key] = data
        return texts

    def keys(self) -> set[str]:
        """Return the keys of all texts, without reading them."""
        with text_errors():
            return self.index.keys()

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Return the keys without a text: it was never added, its segment is missing or cut, or it
        could not be read. Does not read the texts."""
        with text_errors():
            return [key for part in slices(keys, KEYS_AT_ONCE) for key in self._missing(part)]

    def compare(self, segment: int, check: Check = never_cancelled) -> bool:
        """Return whether all blocks of a segment agree with their checksums. The texts of others
        are forgotten: any process adds them again. `check` is called before each block."""
        with text_errors():
            if damaged := self.segments.damaged(self.index.blocks(segment), check):
                with self._transaction() as database:
                    _forget(database, damaged)
            return not damaged

    def examine(self) -> None:
        """Read all blocks. The texts of those that are damaged count as missing in this process."""
        with text_errors():
            for segment in self.segments.names():
                self._damaged.update(self.segments.damaged(self.index.blocks(segment)))

    # --- writing ---

    def add(self, texts: Mapping[str, str]) -> None:
        """Add the texts that are missing. They can be read when this returns. A kill loses nothing;
        a power cut may lose what was added since `sync`."""
        with text_errors(), self._transaction() as database:
            self._write_all(database, ((key, texts[key].encode()) for key in self.missing(texts)))

    def sync(self) -> None:
        """Make all texts durable that this process has added."""
        with text_errors(), self._writing:
            if self._writer is not None:
                self._writer.sync()
                self.index.sync()
            self._close_writer()

    def discard(self, keys: Sequence[str], referenced: Referenced) -> None:
        """Delete those of the texts that no row names. Their bytes stay until `collect`."""
        with text_errors():
            if not self.index.path.exists():
                return
            for part in slices(keys, KEYS_AT_ONCE):
                with self._transaction() as database:
                    _delete(database, set(part) - set(referenced(part)))

    def collect(self, referenced: Referenced, check: Check = never_cancelled) -> int:
        """Delete the texts that no row names, and merge segments. Return the number of texts.

        `check` is called between the steps; an exception leaves the rest.
        """
        with text_errors():
            if not self.index.path.exists():
                return 0
            deleted = self._delete_unreferenced(referenced, check)
            self._merge(check)
            self._remove_unknown()
            return deleted

    def copy(self, target: Path, check: Check = never_cancelled) -> None:
        """Copy the store to `target`, an empty folder. `collect` must not run meanwhile."""
        with text_errors(), self.index.reading() as database:
            if database is None:
                return
            with closing(sqlite3.connect(target / self.index.path.name)) as copy:
                database.backup(copy)
                segments = [
                    number for (number,) in copy.execute("SELECT DISTINCT segment FROM text")
                ]
            for segment in segments:
                check()
                self.segments.copy(segment, target)

    def files(self) -> list[Path]:
        """Return the files of the store."""
        return [path for path in self.folder.glob("*") if path.is_file()]

    def repair(self) -> bool:
        """Delete a broken index: its texts are added again. Return whether it was broken."""
        with text_errors():
            broken = self.index.is_broken()
            if broken:
                self.index.remove()
            return broken

    def close(self) -> None:
        """Close all files. The next call opens them again."""
        with self._writing:
            self._close_writer()
        self.segments.close()
        self.index.close()

    def _data(self, key: str, place: Place) -> bytes | None:
        """A text in UTF-8; None if it is missing or damaged."""
        block, start, size = place
        try:
            return self.segments.read(block)[start : start + size]
        except FileNotFoundError:
            pass  # a merge has moved it, or the file is lost
        except (OSError, zstandard.ZstdError):
            self._damaged.add(block)
        moved = self.index.places([key]).get(key)
        if moved is None or moved == place:
            return None
        self.moves += 1
        return self._data(key, moved)

    def _missing(self, keys: Sequence[str]) -> Sequence[str]:
        """As `missing`, for at most KEYS_AT_ONCE keys."""
        places = self.index.places(keys)
        while True:
            # Read after the places, as segments grow.
            segments = {place.block.segment for place in places.values()}
            sizes = {segment: self.segments.size(segment) for segment in segments}
            keys = [key for key in keys if not self._exists(places.get(key), sizes)]
            if not keys:
                return []
            # A merge may have moved them.
            before, places = places, self.index.places(keys)
            if all(places.get(key) == before.get(key) for key in keys):
                return keys

    def _exists(self, place: Place | None, sizes: Mapping[int, int]) -> bool:
        if place is None or place.block in self._damaged:
            return False
        return place.block.offset + place.block.size <= sizes[place.block.segment]

    # --- segments ---

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction on the index. One at a time.

        After an error the segment in progress has blocks that the index does not know, or is one
        that it does not know (`_writer_for`).
        """
        with self._writing, self.index.writing() as database:
            yield database

    def _write_all(self, database: sqlite3.Connection, texts: Iterable[tuple[str, bytes]]) -> None:
        """Write texts, as many together as fill a block."""
        for block in grouped(texts, lambda text: len(text[1]), BLOCK_BYTES):
            self.write(database, block)

    def write(self, database: sqlite3.Connection, texts: Sequence[tuple[str, bytes]]) -> None:
        """Write a block with some texts, and where they are."""
        writer = self._writer_for(database)
        block = writer.write(b"".join(data for _, data in texts))
        rows, start = [], 0
        for key, data in texts:
            rows.append((bytes.fromhex(key), *block, start, len(data)))
            start += len(data)
        database.executemany("INSERT OR REPLACE INTO text VALUES (?, ?, ?, ?, ?, ?)", rows)
        database.execute(
            "UPDATE segment SET size = ?, texts = texts + ? WHERE id = ?",
            (writer.size, start, block.segment),
        )

    def _writer_for(self, database: sqlite3.Connection) -> SegmentWriter:
        """The writer of the segment in progress, or of a new one. No other process writes to it,
        but one may have merged it. The index does not know it if its transaction failed."""
        writer = self._writer
        if writer is not None and writer.size >= SEGMENT_BYTES:
            writer.sync()
            self._close_writer()
        elif writer is not None:
            which = "SELECT 1 FROM segment WHERE id = ?"
            if database.execute(which, (writer.segment,)).fetchone() is None:
                self._close_writer()
        if self._writer is None:
            number = randbits(62)
            self._writer = SegmentWriter(self.segments.path(number), number)
            database.execute("INSERT INTO segment VALUES (?, 0, 0)", (number,))
        return self._writer

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    # --- collecting ---

    def _delete_unreferenced(self, referenced: Referenced, check: Check) -> int:
        deleted, last = 0, b""
        while True:
            check()
            with self._transaction() as database:
                rows = database.execute(
                    "SELECT sha256 FROM text WHERE sha256 > ? ORDER BY sha256 LIMIT ?",
                    (last, KEYS_AT_ONCE),
                ).fetchall()
                if not rows:
                    return deleted
                last = rows[-1][0]
                keys = [key.hex() for (key,) in rows]
                dead = set(keys) - set(referenced(keys))
                _delete(database, dead)
                deleted += len(dead)

    def _merge(self, check: Check) -> None:
        """Write the texts of sparse and of many small segments to a new one."""
        self.sync()
        with self.index.reading() as database:
            assert database is not None
            rows = database.execute(
                "SELECT segment.id, segment.size, texts, ifnull(sum(text.size), 0) FROM segment"
                " LEFT JOIN text ON segment = segment.id GROUP BY segment.id"
            ).fetchall()
        sparse = [number for number, _, texts, live in rows if live < texts * LIVE_PART]
        small = [number for number, size, *_ in rows if size < SMALL_BYTES]
        for segment in dict.fromkeys([*sparse, *(small if len(small) >= MAX_SMALL else [])]):
            check()
            self._rewrite(segment)

    def _rewrite(self, segment: int) -> None:
        """Write the texts of a segment to the segment in progress, and remove it. Texts that the
        disk does not give now stay in it, until the next merge."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT sha256, block, block_size, start, size FROM text WHERE segment = ?"
                " ORDER BY block, start",
                (segment,),
            ).fetchall()
            unreadable: set[bytes] = set()
            self._write_all(database, self._texts_of(segment, rows, unreadable))
            if self._writer is not None:
                self._writer.sync()
            # What is lost. What was written again has another segment by now.
            lost = [(segment, key) for key, *_ in rows if key not in unreadable]
            database.executemany("DELETE FROM text WHERE segment = ? AND sha256 = ?", lost)
            if not unreadable:
                database.execute("DELETE FROM segment WHERE id = ?", (segment,))
        if not unreadable:
            self.segments.remove(segment)

    def _texts_of(
        self, segment: int, rows: Iterable[tuple[bytes, int, int, int, int]], unreadable: set[bytes]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield key and text. Adds to `unreadable` what the disk does not give now, but maybe
        later, and leaves out what is lost."""
        for key, offset, block_size, start, size in rows:
            block = Block(segment, offset, block_size)
            try:
                data = self.segments.read(block)
            except (FileNotFoundError, zstandard.ZstdError):
                continue
            except OSError:
                self._damaged.add(block)
                unreadable.add(key)
                continue
            yield key.hex(), data[start : start + size]

    def _remove_unknown(self) -> None:
        """Remove segments that the index does not know: their transaction was not committed."""
        with self._transaction() as database:
            known = {number for (number,) in database.execute("SELECT id FROM segment")}
            for segment in self.segments.names():
                if segment not in known:
                    self.segments.remove(segment)


def _forget(database: sqlite3.Connection, blocks: Iterable[Block]) -> None:
    where = [(block.segment, block.offset) for block in blocks]
    database.executemany("DELETE FROM text WHERE segment = ? AND block = ?", where)


def _delete(database: sqlite3.Connection, keys: Iterable[str]) -> None:
    values = [(bytes.fromhex(key),) for key in keys]
    database.executemany("DELETE FROM text WHERE sha256 = ?", values)


_store = PerProcess(lambda: TextStore(config().data_dir.absolute() / "texts"))
# The text store of this process, in the data folder.
get_texts, reset_texts = _store.get, _store.reset
