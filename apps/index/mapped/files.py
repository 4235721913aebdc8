"""The file format of the mapped copy: named arrays in one file, behind a header.

    magic, length of the header (u4), CRC-32 of the header (u4), header (JSON), arrays

Each array starts at a multiple of ALIGNMENT. The header has the version of the format, the facts of
the caller, the size of the file, and for each array its place and its CRC-32. A file never changes
once it has its name.
"""

import json
import mmap
import os
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from apps.core.errors import Unavailable
from apps.core.system import disk, posix

# Increment it if the arrays or their meaning change: older files are then written again.
VERSION = 2
ALIGNMENT = 64
# Larger arrays are not compared with their CRC-32 when a file is opened, which takes 1 ms a MB.
CHECKED_BYTES = 1 << 16
# Linux reads no more for one call of madvise than it reads ahead elsewhere, by default so much.
READ_AHEAD = 128 << 10
_MAGIC = b"codeinfo-mapped\n"
_START = struct.Struct("<II")

Array = NDArray[Any]


@contextmanager
def writing_errors() -> Iterator[None]:
    """Translate errors of the file system to Unavailable: DISK_FULL or MAPPED_UNAVAILABLE."""
    try:
        yield
    except OSError as error:
        if error.errno in disk.FULL:
            raise disk.full_error(reason=str(error)) from error
        text = f"The mapped copy cannot be written: {error}"
        raise Unavailable(text, code="MAPPED_UNAVAILABLE") from error


class Damaged(Exception):
    """A file is truncated, changed, or of another version."""


class Opened(NamedTuple):
    """A mapped file. Its arrays are read-only views of it."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]


def write(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> int:
    """Write a file, and give it its name once it is complete on the disk. Return its size.

    Raises OSError, and leaves nothing then.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    described = {name: _described(array) for name, array in arrays.items()}
    offset = 0
    for array, entry in zip(arrays.values(), described.values(), strict=True):
        entry["offset"], offset = offset, _aligned(offset + array.nbytes)
    header = json.dumps({"version": VERSION, "facts": facts, "arrays": described}).encode()
    start = _aligned(len(_MAGIC) + _START.size + len(header))
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(_MAGIC + _START.pack(len(header), crc32(header)) + header)
            for name, array in arrays.items():
                file.seek(start + described[name]["offset"])
                file.write(array.data.cast("B") if array.size else b"")
            file.truncate(start + offset)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    posix.sync_folder(path.parent)
    return start + offset


def open_file(path: Path, wanted: Collection[str] = ()) -> Opened:
    """Map a file. Raises Damaged; FileNotFoundError if there is none.

    wanted: arrays that the system begins to read from the disk
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < len(_MAGIC) + _START.size:
            raise Damaged(f"{path.name} has {size} bytes")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header, start = _header(path, mapped)
    arrays = {}
    end = start
    for name, entry in header["arrays"].items():
        first = start + entry["offset"]
        end = max(end, _aligned(first + entry["bytes"]))
        if first + entry["bytes"] > size:
            raise Damaged(f"{path.name} is truncated")
        count = entry["bytes"] // np.dtype(entry["dtype"]).itemsize
        array = np.frombuffer(mapped, entry["dtype"], count, first)
        if array.nbytes <= CHECKED_BYTES and crc32(array.data) != entry["crc"]:
            raise Damaged(f"{name} of {path.name} has changed")
        arrays[name] = array.reshape(entry["shape"])
        if name in wanted:
            _begin_to_read(mapped, first, first + array.nbytes)
    if end != size:
        raise Damaged(f"{path.name} has {size} bytes instead of {end}")
    return Opened(header["facts"], arrays)


def _begin_to_read(mapped: mmap.mmap, start: int, end: int) -> None:
    """Have the system read a part of a file while the program goes on."""
    if hasattr(mapped, "madvise"):
        for at in range(start // READ_AHEAD * READ_AHEAD, end, READ_AHEAD):
            mapped.madvise(mmap.MADV_WILLNEED, at, min(READ_AHEAD, len(mapped) - at))


def write_text(path: Path, text: str) -> None:
    """Write a small text with its CRC-32, and give it its name once it is complete on the disk.
    Raises OSError."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(f"{crc32(text.encode()):08x}\n{text}")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    posix.sync_folder(path.parent)


def read_text(path: Path) -> str:
    """Read what `write_text` wrote. Raises Damaged; FileNotFoundError if there is none."""
    try:
        crc, _, text = path.read_text(encoding="utf-8").partition("\n")
    except UnicodeDecodeError as error:
        raise Damaged(f"{path.name} is not text") from error
    if crc != f"{crc32(text.encode()):08x}":
        raise Damaged(f"{path.name} has changed")
    return text


def _header(path: Path, mapped: mmap.mmap) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays start."""
    begin = len(_MAGIC) + _START.size
    length, crc = _START.unpack_from(mapped, len(_MAGIC))
    text = mapped[begin : begin + length]
    if mapped[: len(_MAGIC)] != _MAGIC or crc32(text) != crc:
        raise Damaged(f"the header of {path.name} is damaged")
    header: dict[str, Any] = json.loads(text)
    if header["version"] != VERSION:
        raise Damaged(f"{path.name} is of version {header['version']}")
    return header, _aligned(begin + length)


def _described(array: Array) -> dict[str, Any]:
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": array.nbytes,
        "crc": crc32(array.data),
    }


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
