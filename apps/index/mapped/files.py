"""The file format of the index: named arrays in one file, before a footer with checksums.

    magic, arrays, footer (JSON), size of what is before the footer (u8), size of the footer (u4),
    version of the format (u4), CRC-32 of the footer and of these numbers (u4), magic

Each array starts at a multiple of ALIGNMENT. The footer has the facts of the writer, the place of
each array, and the CRC-32 of each block of BLOCK_BYTES before the footer, padding included. So each
byte of a file is compared with a checksum: the footer and small arrays when it is opened, all
others by `verify`. Its name is the SHA-256 of its content. It never changes.
"""

import errno
import hashlib
import json
import math
import mmap
import os
import stat
import struct
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from apps.core.errors import Unavailable, reason_of
from apps.core.system import disk, posix
from apps.core.system.mapping import Mapping as Mapped
from apps.index.types import Check, never_cancelled

# Increment it if the arrays or their meaning change. `earlier` reads the version before.
VERSION = 7
ALIGNMENT = 64
BLOCK_BYTES = 1 << 16
# The blocks of larger arrays are not compared when a file is mapped, which takes 1 ms a MB.
CHECKED_BYTES = 1 << 16
# Smaller files are read: Python's mmap holds a descriptor, of which a process has 1,024.
MAPPED_BYTES = 1 << 20
# The footer of a part has at most 3 MB: 37 bytes for each of PART_ROWS runs.
MAX_FOOTER_BYTES = 16 << 20
# Linux reads no more for one call of madvise than it reads ahead elsewhere, by default so much.
READ_AHEAD = 128 << 10
_MAGIC = b"codeinfo-mapped\n"
_NUMBERS = struct.Struct("<QII")
_CRC = struct.Struct("<I")
_CRCS = np.dtype("<u4")
_END_BYTES = _NUMBERS.size + _CRC.size + len(_MAGIC)
# What open and read say of a link, of a socket, and of a sector that the disk cannot read.
_DAMAGES = frozenset({errno.ELOOP, errno.ENXIO, errno.EIO})

Array = NDArray[Any]


@contextmanager
def writing_errors() -> Iterator[None]:
    """Translate errors of the file system to Unavailable: DISK_FULL or INDEX_UNAVAILABLE."""
    try:
        yield
    except OSError as error:
        if error.errno in disk.FULL:
            raise disk.full_error(reason=str(error)) from error
        text = f"The index cannot be written: {reason_of(error)}"
        raise Unavailable(text, code="INDEX_UNAVAILABLE") from error


class Damaged(Exception):
    """A file is truncated, changed, no file, or of another version."""


class Opened(NamedTuple):
    """A file in memory, or mapped. Its arrays are read-only views of it."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]
    mapped: Mapped | None = None  # None: in memory


def write(folder: Path, suffix: str, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Write a file, and give it its name once it is complete on the disk. Return the name, without
    the suffix.

    It replaces a file of that name, which may be damaged. Raises OSError, and leaves nothing then.
    """
    descriptor, temporary = tempfile.mkstemp(".tmp", "", folder)
    try:
        with open(descriptor, "wb") as file:
            writer = _Writer(file)
            writer.write_arrays(arrays)
            writer.write_footer(facts)
            file.flush()
            os.fsync(descriptor)
        name = writer.sha256.hexdigest()
        os.rename(temporary, folder / f"{name}{suffix}")
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    posix.sync_folder(folder)
    return name


class _Writer:
    """Writes a file piece by piece, with its checksums."""

    def __init__(self, file: BinaryIO) -> None:
        self.sha256 = hashlib.sha256()
        self._file = file
        self._size = 0
        self._crcs = [0]  # of each block; the last one grows
        self._places: dict[str, tuple[str, tuple[int, ...], int]] = {}

    def write_arrays(self, arrays: Mapping[str, Array]) -> None:
        self._write(_MAGIC)
        # The small ones are first, so that they are in few blocks.
        for name, array in sorted(arrays.items(), key=lambda item: item[1].nbytes):
            self._write(bytes(-self._size % ALIGNMENT))
            self._places[name] = array.dtype.str, array.shape, self._size
            self._write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def write_footer(self, facts: Mapping[str, Any]) -> None:
        crcs = np.array(self._crcs[: _blocks(self._size)], _CRCS).tobytes().hex()
        footer = json.dumps({"facts": facts, "arrays": self._places, "crcs": crcs}).encode()
        footer += _NUMBERS.pack(self._size, len(footer), VERSION)
        self._write(footer + _CRC.pack(crc32(footer)) + _MAGIC)

    def _write(self, content: bytes | memoryview) -> None:
        rest = memoryview(content)
        while rest:
            piece = rest[: BLOCK_BYTES - self._size % BLOCK_BYTES]
            self._file.write(piece)
            self.sha256.update(piece)
            self._crcs[-1] = crc32(piece, self._crcs[-1])
            self._size += len(piece)
            if self._size % BLOCK_BYTES == 0:
                self._crcs.append(0)
            rest = rest[len(piece) :]


def open_file(path: Path, wanted: Collection[str] = ()) -> Opened:
    """Read or map a file. Raises Damaged; OSError, as FileNotFoundError if there is none.

    wanted: arrays that the system begins to read from the disk

    A file that is read is compared with all its checksums.
    """
    with _opened(path) as (descriptor, size), _understood(path.name):
        footer = _read_footer(path.name, descriptor, size)
        mapped = None if size < MAPPED_BYTES else Mapped.of(descriptor, size, path)
        content = posix.pread(descriptor, footer.start, 0) if mapped is None else mapped
        view = memoryview(content)
        small = (place.end for place in footer.places.values() if place.nbytes <= CHECKED_BYTES)
        for number in range(_blocks(footer.start if mapped is None else max(small, default=0))):
            footer.compare(number, view[footer.block(number)])
        arrays = {}
        for name, place in footer.places.items():
            flat = np.frombuffer(content, place.dtype, place.size, place.start)
            arrays[name] = flat.reshape(place.shape)
            if name in wanted and mapped is not None:
                _begin_to_read(mapped, place.start, place.end)
    return Opened(footer.facts, arrays, mapped)


def verify(path: Path, check: Check = never_cancelled) -> None:
    """Compare a whole file with its checksums. Raises Damaged, which names the arrays of the first
    block that has changed; OSError.

    check: called before each block
    """
    with _opened(path) as (descriptor, size):
        footer = _read_footer(path.name, descriptor, size)
        for number in range(len(footer.crcs)):
            check()
            block = footer.block(number)
            footer.compare(number, posix.pread(descriptor, block.stop - block.start, block.start))


def read_facts(path: Path) -> Mapping[str, Any]:
    """Return the facts of the writer of a file. Raises Damaged, OSError."""
    with _opened(path) as (descriptor, size):
        return _read_footer(path.name, descriptor, size).facts


def _begin_to_read(mapped: Mapped, start: int, end: int) -> None:
    """Have the system read a part of a file while the program goes on."""
    if hasattr(mapped, "madvise"):
        for at in range(start // READ_AHEAD * READ_AHEAD, end, READ_AHEAD):
            mapped.madvise(mmap.MADV_WILLNEED, at, min(READ_AHEAD, len(mapped) - at))


class _Place(NamedTuple):
    """Where an array is."""

    dtype: "np.dtype[Any]"
    shape: Sequence[int]
    start: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def end(self) -> int:
        return self.start + self.nbytes


class _Footer(NamedTuple):
    file: str
    start: int  # where it is; the blocks are before it
    facts: Mapping[str, Any]
    places: Mapping[str, _Place]
    crcs: Sequence[int]

    def block(self, number: int) -> slice:
        start = number * BLOCK_BYTES
        return slice(start, min(start + BLOCK_BYTES, self.start))

    def compare(self, number: int, content: "bytes | memoryview") -> None:
        """Raise Damaged if this is not the content of a block."""
        if crc32(content) != self.crcs[number]:
            block = self.block(number)
            names = (
                name
                for name, place in self.places.items()
                if place.start < block.stop and block.start < place.end
            )
            raise Damaged(f"{' or '.join(names) or 'the padding'} of {self.file} has changed")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, int]]:
    """Open a regular file. Yields its descriptor and its size. Raises Damaged, OSError."""
    try:
        descriptor = posix.open_nofollow(path, os.O_RDONLY | posix.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Damaged(f"{path.name} is not a regular file")
            yield descriptor, status.st_size
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _DAMAGES:
            raise Damaged(f"{path.name} cannot be read: {error.strerror}") from error
        raise


@contextmanager
def _understood(name: str) -> Iterator[None]:
    """Translate the errors of a footer that has its checksum, but makes no sense, to Damaged."""
    try:
        yield
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise Damaged(f"the footer of {name} is not understood: {error}") from error


def _read_footer(name: str, descriptor: int, size: int) -> _Footer:
    """Raises Damaged. Reads no more than MAX_FOOTER_BYTES, whatever the file says."""
    if size < _END_BYTES:
        raise Damaged(f"{name} has {size} bytes")
    end = posix.pread(descriptor, _END_BYTES, size - _END_BYTES)
    if not end.endswith(_MAGIC):
        raise Damaged(f"{name} has no footer: it is truncated, or of a version before 3")
    start, length, version = _NUMBERS.unpack_from(end)
    if version not in (VERSION, VERSION - 1):
        raise Damaged(f"{name} is of version {version}")
    if start + length + _END_BYTES != size or length > MAX_FOOTER_BYTES:
        raise Damaged(f"{name} has {size} bytes instead of {start + length + _END_BYTES}")
    text = posix.pread(descriptor, length, start)
    if _CRC.unpack_from(end, _NUMBERS.size)[0] != crc32(text + end[: _NUMBERS.size]):
        raise Damaged(f"the footer of {name} has changed")
    with _understood(name):
        return _footer(name, start, json.loads(text))


def _footer(file: str, start: int, described: dict[str, Any]) -> _Footer:
    places = {
        name: _Place(np.dtype(dtype), shape, first)
        for name, (dtype, shape, first) in described["arrays"].items()
    }
    crcs = np.frombuffer(bytes.fromhex(described["crcs"]), _CRCS).tolist()
    for name, place in places.items():
        if not 0 <= place.start <= place.end <= start:
            raise ValueError(f"{name} is not in the file")
    if len(crcs) != _blocks(start):
        raise ValueError(f"it has the checksums of {len(crcs)} blocks")
    return _Footer(file, start, described["facts"], places, crcs)


def _blocks(size: int) -> int:
    return -(-size // BLOCK_BYTES)
