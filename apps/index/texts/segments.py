"""The segment files of the text store: compressed blocks of texts, never changed once written.

A block holds at least BLOCK_BYTES of texts, one after another in UTF-8, so that small files
compress well and one text is read in 0.1 ms. It is one Zstandard frame (RFC 8878) with a checksum.
A large one is a frame for each FRAME_BYTES, so that a part is read by itself, after a skippable
frame with their sizes. Of 890 MB of C code, blocks take 24.8 %. With 64 KB and one frame they would
take 20.8 %, and to read a part four times as long.
"""

import errno
import os
import re
import struct
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, cast

import zstandard

from apps.core.system import posix
from apps.index.decompressor import decompressor
from apps.index.types import Check, never_cancelled

_NAME = re.compile(r"([0-9a-f]{1,16})\.zst")

BLOCK_BYTES = FRAME_BYTES = 16 << 10
LEVEL = 6
CACHED_BYTES = 64 << 20  # of decompressed blocks that stay in memory
BYTES_AT_ONCE = 16 << 20  # of `Segments.read_all`
# Blocks that are so near in a file are read at once: to read what is between them takes less than
# another call, which gives the interpreter lock to another thread.
NEAR_BYTES, RUN_BYTES = 16 << 10, 4 << 20
# A block ends with the text that fills it, and a file has at most a few megabytes.
MAX_BLOCK_BYTES = 1 << 28
OPEN_SEGMENTS = 64
# What a block of several frames begins with: the magic number of a skippable frame, and the size of
# what follows in it: for each frame its bytes (u32, little-endian).
_SKIPPABLE = 0x184D2A50
_TABLE = struct.Struct("<II")


class Block(NamedTuple):
    """The place of a block."""

    segment: int
    offset: int  # bytes
    size: int  # bytes, compressed


# Where each part of a block starts and ends, in bytes.
Ranges = Sequence[tuple[int, int]]
Content = bytes | zstandard.BufferSegment  # both are buffers, which the stubs do not know


class Segments:
    """The segment files in a folder. Thread-safe. Raises OSError and zstandard.ZstdError."""

    def __init__(self, folder: Path, cached_bytes: int = 0) -> None:
        """cached_bytes: of blocks in memory, if not CACHED_BYTES"""
        self._folder = folder
        self._cached_bytes = cached_bytes
        self._lock = threading.Lock()
        self.files: OrderedDict[int, int] = OrderedDict()  # segment → descriptor
        self.blocks: OrderedDict[Block, bytes] = OrderedDict()
        self.cached = 0  # bytes

    def path(self, segment: int) -> Path:
        return self._folder / f"{segment:x}.zst"

    def read(self, block: Block) -> bytes:
        """Return the texts of a block. Raises ZstdError if it is damaged."""
        with self._lock:
            if (data := self.blocks.get(block)) is not None:
                self.blocks.move_to_end(block)
                return data
            compressed = posix.pread(self._descriptor(block.segment), block.size, block.offset)
        data = _decompressed(compressed)
        self._keep(block, data)
        return data

    def damaged(self, blocks: Iterable[Block], check: Check = never_cancelled) -> list[Block]:
        """Return those blocks of a segment that are not as they were written, whatever is in
        memory; none if it is gone, as by a merge. `check` is called before each."""
        found = []
        for block in blocks:
            check()
            try:
                with self._lock:
                    data = posix.pread(self._descriptor(block.segment), block.size, block.offset)
                _decompressed(data)
            except FileNotFoundError:
                return []
            except zstandard.ZstdError:
                found.append(block)
            except OSError as error:
                if error.errno != errno.EIO:  # a sector that the disk cannot read
                    raise
                found.append(block)
        return found

    def read_all(self, blocks: Iterable[Block]) -> dict[Block, bytes]:
        """Return the texts of blocks, about BYTES_AT_ONCE at most. Blocks that cannot be read are
        left out: `read` tells why."""
        texts, compressed = self._opened(blocks)
        size = 0
        for block, part in compressed.items():
            with suppress(zstandard.ZstdError):
                texts[block] = data = _decompressed(part)
                self._keep(block, data)
                size += len(data)
            if size > BYTES_AT_ONCE:
                break
        return texts

    def read_parts(self, wanted: Sequence[tuple[Block, Ranges]]) -> list[bytes | None]:
        """Return the bytes of blocks from each start to its end, one after another; None for a
        block that cannot be read. Of a large block, no more is decompressed than is needed."""
        in_memory, compressed = self._opened(block for block, _ in wanted)
        opened = {block: _Opened([], [data]) for block, data in in_memory.items()}
        for block, part in compressed.items():
            with suppress(zstandard.ZstdError):
                frames = _frames(part)
                opened[block] = _Opened(frames, [None] * len(frames))
        waiting: list[tuple[_Opened, int]] = []
        for block, ranges in wanted:
            if (entry := opened.get(block)) is not None:
                waiting += [(entry, number) for number in entry.missing(ranges)]
        _decompress(waiting)
        return [
            None if (entry := opened.get(block)) is None else entry.joined(ranges)
            for block, ranges in wanted
        ]

    def _opened(
        self, blocks: Iterable[Block]
    ) -> tuple[dict[Block, bytes], dict[Block, memoryview]]:
        """Blocks that are in memory, and others as they are in their files. Those that cannot be
        read are left out."""
        in_memory: dict[Block, bytes] = {}
        compressed: dict[Block, memoryview] = {}
        with self._lock:
            waiting = []
            for block in dict.fromkeys(blocks):
                if (data := self.blocks.get(block)) is None:
                    waiting.append(block)
                else:
                    self.blocks.move_to_end(block)
                    in_memory[block] = data
            for run in _runs(waiting):
                try:
                    compressed |= self._read_run(run)
                except OSError:
                    for block in run:
                        with suppress(OSError):
                            compressed |= self._read_run([block])
        return in_memory, compressed

    def _read_run(self, run: Sequence[Block]) -> dict[Block, memoryview]:
        """Read blocks of a segment, ascending, at once. The caller holds the lock."""
        start, last = run[0].offset, run[-1]
        size = last.offset + last.size - start
        data = memoryview(posix.pread(self._descriptor(last.segment), size, start))
        return {block: data[block.offset - start :][: block.size] for block in run}

    def _keep(self, block: Block, data: bytes) -> None:
        """Keep a decompressed block in memory, in the place of those that were used long ago."""
        with self._lock:
            if block not in self.blocks:
                self.blocks[block] = data
                self.cached += len(data)
            while self.cached > (self._cached_bytes or CACHED_BYTES) and len(self.blocks) > 1:
                self.cached -= len(self.blocks.popitem(last=False)[1])

    def size(self, segment: int) -> int:
        """Return the size of a segment in bytes; -1 if it is missing, or no regular file."""
        with suppress(FileNotFoundError):
            status = self.path(segment).lstat()
            return status.st_size if S_ISREG(status.st_mode) else -1
        return -1

    def remove(self, segment: int) -> None:
        """Remove a segment, if it exists. A folder in its place stays."""
        with suppress(IsADirectoryError):
            self.path(segment).unlink(missing_ok=True)
        with self._lock:
            if (descriptor := self.files.pop(segment, None)) is not None:
                os.close(descriptor)
            for block in [kept for kept in self.blocks if kept.segment == segment]:
                self.cached -= len(self.blocks.pop(block))

    def copy(self, segment: int, target: Path) -> None:
        """Copy a segment to a folder, if it exists."""
        source = self.path(segment)
        with suppress(FileNotFoundError):
            descriptor = posix.open_nofollow(source)
            with open(descriptor, "rb") as opened, (target / source.name).open("xb") as copy:
                while piece := opened.read(1 << 20):
                    copy.write(piece)

    def names(self) -> list[int]:
        """Return the segments that have a file."""
        with suppress(FileNotFoundError):
            entries = [entry for entry in os.scandir(self._folder) if entry.is_file()]
            matches = [_NAME.fullmatch(entry.name) for entry in entries]
            return sorted(int(match[1], 16) for match in matches if match)
        return []

    def close(self) -> None:
        with self._lock:
            while self.files:
                os.close(self.files.popitem()[1])
            self.blocks.clear()
            self.cached = 0

    def _descriptor(self, segment: int) -> int:
        """The open file of a segment. The caller holds the lock."""
        if segment in self.files:
            self.files.move_to_end(segment)
            return self.files[segment]
        descriptor = posix.open_nofollow(self.path(segment))
        # Those that another process has merged keep their room on the disk while they are open.
        gone = [one for one, opened in self.files.items() if not os.fstat(opened).st_nlink]
        for one in [*gone, *list(self.files)[: len(self.files) - OPEN_SEGMENTS + 1]]:
            if one in self.files:
                os.close(self.files.pop(one))
        self.files[segment] = descriptor
        return descriptor


def _runs(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield blocks that are near each other, ascending."""
    run: list[Block] = []
    for block in sorted(blocks):
        if run and not _is_near(run, block):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _is_near(run: Sequence[Block], block: Block) -> bool:
    first, last = run[0], run[-1]
    return (
        block.segment == last.segment
        and block.offset <= last.offset + last.size + NEAR_BYTES
        and block.offset - first.offset < RUN_BYTES
    )


def _decompressed(data: bytes | memoryview) -> bytes:
    """Raises ZstdError if the data is no block."""
    frames = _frames(data)
    return b"".join(map(_content, frames)) if len(frames) > 1 else _content(frames[0])


class _Opened(NamedTuple):
    """A block of which parts are read."""

    frames: list[memoryview]  # compressed
    contents: list[Content | None]  # None: not decompressed; empty: in progress, or damaged

    def missing(self, ranges: Ranges) -> list[int]:
        """The frames that ranges need and that nobody has asked for."""
        contents = self.contents
        if len(contents) == 1:
            numbers: Iterable[int] = (0,)
        else:
            numbers = [number for range_ in ranges for number in self._numbers(*range_)]
        missing = []
        for number in numbers:
            if contents[number] is None:
                contents[number] = b""
                missing.append(number)
        return missing

    def joined(self, ranges: Ranges) -> bytes | None:
        """Join ranges; None if a frame of them is damaged."""
        contents = self.contents
        parts = []
        for start, end in ranges:
            for number in self._numbers(start, end):
                content, at = contents[number], number * FRAME_BYTES
                if not content:
                    return None
                parts.append(memoryview(cast("bytes", content))[max(start - at, 0) : end - at])
        return b"".join(parts)

    def _numbers(self, start: int, end: int) -> range:
        """The frames of a range. The only frame of a block may be larger than FRAME_BYTES."""
        if len(self.contents) == 1:
            return range(1)
        return range(start // FRAME_BYTES, min(-(-end // FRAME_BYTES), len(self.contents)))


def _decompress(waiting: Sequence[tuple[_Opened, int]]) -> None:
    """Decompress frames of blocks at once. The interpreter lock is released once for all, and not
    for each, which takes as long as to decompress one."""
    usable = [(entry, number) for entry, number in waiting if _is_usable(entry.frames[number])]
    if not usable:
        return
    frames: list[bytes | bytearray | memoryview] = [entry.frames[n] for entry, n in usable]
    try:
        contents = decompressor().multi_decompress_to_buffer(frames)
        for at, (entry, number) in enumerate(usable):
            entry.contents[number] = contents[at]
    except zstandard.ZstdError:
        for entry, number in usable:
            with suppress(zstandard.ZstdError):
                entry.contents[number] = _content(entry.frames[number])


def _frames(data: bytes | memoryview) -> list[memoryview]:
    """The frames of a block. Raises ZstdError if they cannot be told."""
    view = memoryview(data)
    if len(data) < _TABLE.size or (table := _TABLE.unpack_from(data))[0] != _SKIPPABLE:
        return [view]
    at = _TABLE.size + table[1]
    if at > len(data) or table[1] % 4:
        raise zstandard.ZstdError("a block without its frames")
    sizes = struct.unpack_from(f"<{table[1] // 4}I", data, _TABLE.size)
    if at + sum(sizes) != len(data):
        raise zstandard.ZstdError("a block of another size")
    ends = accumulate(sizes, initial=at)
    return [view[start:end] for start, end in pairwise(ends)]


def _content(frame: memoryview) -> bytes:
    size = zstandard.get_frame_parameters(frame).content_size
    if size > MAX_BLOCK_BYTES:
        raise zstandard.ZstdError(f"a block of {size:,} bytes")
    return bytes(decompressor().decompress(frame))


def _is_usable(frame: memoryview) -> bool:
    """Whether a frame tells its size, and it is not larger than that of any block."""
    with suppress(zstandard.ZstdError):
        return zstandard.get_frame_parameters(frame).content_size <= MAX_BLOCK_BYTES
    return False


class SegmentWriter:
    """Appends blocks to a new segment. `sync` makes them durable."""

    def __init__(self, path: Path, segment: int) -> None:
        self.segment = segment
        self._folder = path.parent
        self.size = 0  # bytes
        self._file = posix.open_nofollow(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self._compressor = zstandard.ZstdCompressor(
            level=LEVEL, write_checksum=True, write_content_size=True
        )

    def write(self, texts: bytes) -> Block:
        """Append a block. Return its place, at which it can be read at once."""
        data = self._compressed(texts)
        written = 0
        while written < len(data):
            # Overwrites what a write that failed has left.
            written += posix.pwrite(self._file, data[written:], self.size + written)
        block = Block(self.segment, self.size, len(data))
        self.size += len(data)
        return block

    def _compressed(self, texts: bytes) -> bytes:
        if len(texts) <= 2 * FRAME_BYTES:
            return self._compressor.compress(texts)
        view = memoryview(texts)
        starts = range(0, len(texts), FRAME_BYTES)
        frames = [self._compressor.compress(view[at : at + FRAME_BYTES]) for at in starts]
        table = struct.pack(f"<{len(frames)}I", *map(len, frames))
        return b"".join([_TABLE.pack(_SKIPPABLE, len(table)), table, *frames])

    def sync(self) -> None:
        os.fsync(self._file)
        posix.sync_folder(self._folder)

    def close(self) -> None:
        os.close(self._file)
