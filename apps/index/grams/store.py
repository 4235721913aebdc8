"""The store of the n-gram index: a folder of segments beside the texts, for all roots.

It is derived: what is missing is added from the text store (`maintain`), and a text that no
segment has yet counts as one that may match. So neither a kill nor a lost file loses a result.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import randbits

import numpy as np

from apps.core.concurrency.per_process import PerProcess
from apps.core.config import config
from apps.core.errors import Unavailable, reason_of
from apps.core.values.slices import slices
from apps.index.changes import sweep_due
from apps.index.grams.required import folded
from apps.index.grams.segments import (
    DOC_BITS,
    MAX_PIECES,
    BrokenSegment,
    Pairs,
    Piece,
    Segment,
    write,
)
from apps.index.texts import TextStore
from apps.index.types import Check, never_cancelled

logger = logging.getLogger("codeinfo.ingest")

_ENDING = ".grams"
# Pairs of n-gram and piece of one segment: about 25 MB of texts. Building takes 16 bytes each.
MAX_PAIRS = 6_000_000
# A piece has at least so many bytes, unless its text ends, and whole lines.
PIECE_BYTES = 8 << 10
# So many segments of about the same size are merged.
MERGED_AT_ONCE = 8
# A segment is written again when less than this part of its texts exists.
LIVE_PART = 0.5
TEXTS_AT_ONCE = 200


@contextmanager
def gram_errors() -> Iterator[None]:
    """Translate errors of the file system to Unavailable GRAMS_UNAVAILABLE."""
    try:
        yield
    except OSError as error:
        message = f"The n-gram index failed: {reason_of(error)}"
        raise Unavailable(message, code="GRAMS_UNAVAILABLE") from error


def pieces_of(text: bytes) -> list[Piece]:
    """The pieces of a text, ascending: at most MAX_PIECES, of whole lines. Each ends with the line
    that the next one starts with, as a match may span two lines."""
    pieces, start, size = [], 0, max(PIECE_BYTES, len(text) // (MAX_PIECES // 2))
    while (end := text.find(b"\n", start + size - 1) + 1) and end < len(text):
        pieces.append((start, text.find(b"\n", end) + 1 or len(text)))
        start = end
    return [*pieces, (start, len(text))]


def pairs_of(text: bytes, pieces: Iterable[Piece], number: int) -> Pairs:
    """The distinct n-grams of each piece of a text, as `segments.write` takes them. `number`: of
    the first piece.

    A line break stands before and after each line, so that each three bytes of one have a fourth.
    """
    return np.concatenate(
        [
            _grams_of(text[start:end]) << np.uint64(DOC_BITS) | np.uint64(piece)
            for piece, (start, end) in enumerate(pieces, number)
        ]
    )


def _grams_of(lines: bytes) -> Pairs:
    """The distinct n-grams of some lines."""
    data = np.frombuffer(b"\n" + folded(lines) + b"\n", np.uint8)
    spaces = data == ord(" ")
    data = data[np.concatenate(([True], ~(spaces[1:] & spaces[:-1])))].astype(np.uint32)
    if len(data) < 4:
        return np.zeros(0, np.uint64)
    grams = data[:-3] << 24 | data[1:-2] << 16 | data[2:-1] << 8 | data[3:]
    breaks = data == ord("\n")
    grams = grams[~(breaks[1:-2] | breaks[2:-1])]
    grams.sort()  # several times as fast as np.unique, which hashes
    first = np.concatenate((np.ones(len(grams[:1]), np.bool_), grams[1:] != grams[:-1]))
    distinct: Pairs = grams[first].astype(np.uint64)
    return distinct


class GramStore:
    """Thread-safe. Any number of processes may read and write. Raises Unavailable
    GRAMS_UNAVAILABLE. Keys are SHA-256 digests in hex."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._open: dict[str, Segment | None] = {}  # None: broken

    def segments(self) -> list[Segment]:
        """Return the segments there are now, without broken ones."""
        with gram_errors(), self._lock:
            names = self._names()
            lost = {name for name, one in self._open.items() if one is not None and one.is_lost}
            if lost:
                sweep_due.set()  # `maintain` makes anew what is not whole
            for name in self._open.keys() - (names - lost):
                del self._open[name]
            for name in names - self._open.keys():
                with suppress(FileNotFoundError):  # merged meanwhile
                    self._open[name] = _opened(self._folder / name)
            return [segment for segment in self._open.values() if segment is not None]

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Return the keys of texts that are not indexed."""
        indexed = [segment.hex_keys for segment in self.segments()]
        return [key for key in keys if not any(key in known for known in indexed)]

    def is_fragmented(self) -> bool:
        """Return whether there are so many segments that `maintain` would merge some."""
        with gram_errors():
            return len(self._names()) > 3 * MERGED_AT_ONCE and bool(_due(self.segments(), None))

    def size(self) -> int:
        """Return the bytes of all segments."""
        with gram_errors():
            return sum((self._folder / name).stat().st_size for name in self._names())

    def build(
        self,
        keys: Iterable[str],
        read: Callable[[Sequence[str]], Mapping[str, bytes]],
        check: Check = never_cancelled,
    ) -> None:
        """Index texts, whether or not they are indexed. Those that cannot be read are left out.

        `check` is called often; if it raises, segments that are finished stay.
        """
        writer, waiting = GramWriter(self), list(dict.fromkeys(keys))
        for part in slices(waiting, TEXTS_AT_ONCE):
            check()
            writer.collect(read(part))
        writer.flush()

    def maintain(self, texts: TextStore, check: Check = never_cancelled) -> None:
        """Add texts that are missing, leave out those that were deleted, and merge segments.
        Delete files that are broken or unfinished. `check` as in `build`."""
        with self._writing:
            self._remove_unusable()
            stored = texts.keys()
            self.build(self.missing(stored), texts.read_bytes, check)
            for group in _due(self.segments(), stored):
                check()
                keys = [key for segment in group for key in segment.hex_keys if key in stored]
                self.build(keys, texts.read_bytes, check)
                with gram_errors():
                    for old in group:
                        old.path.unlink(missing_ok=True)

    def write(self, texts: Mapping[str, Sequence[Piece]], pairs: list[Pairs]) -> None:
        """Write a segment, as `segments.write` does. Empties `pairs`."""
        with gram_errors():
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{randbits(62):x}{_ENDING}"
            keyed = {bytes.fromhex(key): pieces for key, pieces in texts.items()}
            together = np.concatenate(pairs)
            pairs.clear()  # 48 MB of MAX_PAIRS
            write(path, keyed, together)

    def paths(self) -> list[Path]:
        """Return the files of all segments."""
        with gram_errors():
            return [self._folder / name for name in sorted(self._names())]

    def is_whole(self, path: Path) -> bool:
        """Return whether a file agrees with its checksum, or is gone meanwhile."""
        with gram_errors(), suppress(FileNotFoundError):
            return _opened(path) is not None
        return True

    def remove_damaged(self, path: Path) -> bool:
        """Delete a file that does not agree with its checksum: `maintain` indexes its texts again.
        Return whether it did not."""
        if self.is_whole(path):
            return False
        with gram_errors():
            path.unlink(missing_ok=True)
        return True

    def close(self) -> None:
        """Forget the segments. The next call opens them again."""
        with self._lock:
            self._open.clear()

    def _names(self) -> set[str]:
        with suppress(FileNotFoundError):
            entries = [entry for entry in os.scandir(self._folder) if entry.is_file()]
            return {entry.name for entry in entries if entry.name.endswith(_ENDING)}
        return set()

    def _remove_unusable(self) -> None:
        self.segments()
        with gram_errors(), self._lock:
            for name in [name for name, segment in self._open.items() if segment is None]:
                (self._folder / name).unlink(missing_ok=True)
                del self._open[name]
                logger.warning(
                    "n-grams removed: damaged or of another format", extra={"context": {}}
                )
            for path in self._folder.glob("*.new"):
                path.unlink(missing_ok=True)


def _opened(path: Path) -> Segment | None:
    try:
        return Segment(path)
    except BrokenSegment:
        return None


def _due(segments: Sequence[Segment], stored: set[str] | None) -> list[list[Segment]]:
    """Groups of segments to write again, each as one or more. `stored`: the texts that exist;
    None: all."""
    sparse = [
        segment
        for segment in segments
        if stored is not None and len(segment.hex_keys & stored) < segment.texts * LIVE_PART
    ]
    tiers: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.pairs < MAX_PAIRS // 2 and segment not in sparse:
            tiers.setdefault(segment.pairs.bit_length() // 3, []).append(segment)
    groups = [tier for tier in tiers.values() if len(tier) >= MERGED_AT_ONCE]
    return [[alone] for alone in sparse] + groups


class GramWriter:
    """Indexes many texts in large segments. Not thread-safe.

    What it has collected is written at MAX_PAIRS and at `flush`; before, its texts count as not
    indexed.
    """

    def __init__(self, store: GramStore) -> None:
        self._store = store
        self._texts: dict[str, Sequence[Piece]] = {}
        self._pairs: list[Pairs] = []
        self._pieces = self._size = 0

    def add(self, texts: Mapping[str, bytes]) -> None:
        """Collect those of key → text that are not indexed."""
        self.collect({key: texts[key] for key in self._store.missing(texts)})

    def collect(self, texts: Mapping[str, bytes]) -> None:
        """Collect key → text."""
        for key, text in texts.items():
            if key in self._texts:
                continue
            pieces = pieces_of(text)
            if self._pieces + len(pieces) > MAX_PIECES:
                self.flush()
            pairs = pairs_of(text, pieces, self._pieces)
            self._texts[key] = pieces
            self._pairs.append(pairs)
            self._pieces += len(pieces)
            self._size += len(pairs)
            if self._size >= MAX_PAIRS:
                self.flush()

    def flush(self) -> None:
        """Write what is collected. If that fails, its texts count as not indexed."""
        if self._texts:
            texts, pairs = self._texts, self._pairs
            self._texts, self._pairs, self._pieces, self._size = {}, [], 0, 0
            self._store.write(texts, pairs)


_store = PerProcess(lambda: GramStore(config().data_dir.absolute() / "grams"))
# The n-gram index of this process, in the data folder.
get_grams, reset_grams = _store.get, _store.reset
