"""A file of the index is what was written, or it is damaged: each byte has a checksum."""

import errno
import hashlib
import json
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from apps.index.mapped import files
from apps.index.mapped.files import Damaged

FACTS = {"runs": ["r1", "r2"]}
SMALL = {
    "numbers": np.arange(5, dtype=np.uint32),
    "matrix": np.arange(6, dtype=np.int8).reshape(3, 2),
    "none": np.zeros((0, 4), np.float32),
}
# Both are in more than one block, and in one together.
LARGE = {
    "large": np.arange(50_000, dtype=np.uint32),
    "larger": np.arange(260_000, dtype=np.uint32),
}
END = struct.Struct("<QIII16s")


def write(folder: Path, arrays: dict[str, Any] | None = None, facts: Any = None) -> Path:
    name = files.write(folder, ".part", facts or FACTS, SMALL if arrays is None else arrays)
    return folder / f"{name}.part"


def opened_and_verified(path: Path) -> None:
    files.open_file(path)
    files.verify(path)


def forged(path: Path, **changes: Any) -> Path:
    """Give a file another footer, with the right checksums."""
    content = path.read_bytes()
    start, length, version, _, magic = END.unpack(content[-END.size :])
    body, footer = content[:start], json.loads(content[start : start + length])
    numbers = {"start": start, "version": version} | {
        name: changes.pop(name) for name in ("start", "length", "version") if name in changes
    }
    text = json.dumps({**footer, **changes}).encode()
    numbers.setdefault("length", len(text))
    text += struct.pack("<QII", *(numbers[name] for name in ("start", "length", "version")))
    path.write_bytes(body + text + struct.pack("<I", crc32(text)) + magic)
    return path


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Map small files, too, and leave most of them to `verify`."""
    monkeypatch.setattr(files, "MAPPED_BYTES", 0)
    monkeypatch.setattr(files, "CHECKED_BYTES", 8)
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)


@pytest.mark.parametrize("arrays", [SMALL, {**SMALL, **LARGE}, {}])
def test_a_file_has_what_was_written_and_the_hash_of_its_content_as_its_name(
    tmp_path: Path, arrays: dict[str, Any]
) -> None:
    path = write(tmp_path, arrays)
    opened = files.open_file(path, wanted=arrays)
    assert opened.facts == files.read_facts(path) == FACTS
    assert set(opened.arrays) == set(arrays)
    for name, array in opened.arrays.items():
        assert (array.dtype, array.shape) == (arrays[name].dtype, arrays[name].shape)
        assert array.tobytes() == arrays[name].tobytes()
        assert not array.flags.writeable
    files.verify(path)
    with path.open("rb") as file:
        assert path.name == f"{hashlib.file_digest(file, 'sha256').hexdigest()}.part"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("way", ["read", "mapped"])
def test_no_flipped_byte_is_overlooked(
    tmp_path: Path, way: str, request: pytest.FixtureRequest
) -> None:
    if way == "mapped":
        request.getfixturevalue("mapped")
    path = write(tmp_path)
    content = path.read_bytes()
    for place, byte in enumerate(content):
        path.write_bytes(content[:place] + bytes([byte ^ 1 << place % 8]) + content[place + 1 :])
        with pytest.raises(Damaged):
            opened_and_verified(path)
    path.write_bytes(content)
    opened_and_verified(path)


@pytest.mark.parametrize("way", ["read", "mapped"])
def test_no_missing_or_added_byte_is_overlooked(
    tmp_path: Path, way: str, request: pytest.FixtureRequest
) -> None:
    if way == "mapped":
        request.getfixturevalue("mapped")
    path = write(tmp_path)
    content = path.read_bytes()
    for harmed in (*(content[:size] for size in range(len(content))), content + b"\0", content * 2):
        path.write_bytes(harmed)
        for read in (files.open_file, files.read_facts, files.verify):
            with pytest.raises(Damaged):
                read(path)


def test_a_damaged_large_array_is_named_by_verify(tmp_path: Path) -> None:
    path = write(tmp_path, {**LARGE, **SMALL})
    content = bytearray(path.read_bytes())
    # The small arrays are first, so only their block is compared before.
    place = content.index(np.uint32(200_000).tobytes(), files.BLOCK_BYTES)
    content[place] ^= 4
    path.write_bytes(content)
    opened = files.open_file(path)
    assert opened.arrays["numbers"].tolist() == SMALL["numbers"].tolist()
    with pytest.raises(Damaged, match=f"^larger of {path.name} has changed$"):
        files.verify(path)


def test_small_arrays_of_a_mapped_file_are_compared_when_it_is_opened(tmp_path: Path) -> None:
    path = write(tmp_path, {**LARGE, **SMALL})
    content = bytearray(path.read_bytes())
    content[content.index(SMALL["matrix"].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(Damaged, match="matrix"):
        files.open_file(path)


def test_verify_ends_between_two_blocks_if_it_is_cancelled(tmp_path: Path) -> None:
    path = write(tmp_path, LARGE)
    calls = []

    class Cancelled(Exception):
        pass

    def check() -> None:
        calls.append(0)
        if len(calls) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        files.verify(path, check)
    assert len(calls) == 3


def test_equal_content_has_one_name_and_replaces_a_damaged_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    assert write(tmp_path) == path
    assert path.read_bytes() == content
    opened_and_verified(path)
    assert write(tmp_path, facts={"runs": ["other"]}) != path


def test_a_replaced_file_stays_readable_for_those_who_have_it_open(
    tmp_path: Path, mapped: None
) -> None:
    opened = files.open_file(write(tmp_path))
    path = write(tmp_path)
    path.unlink()
    assert opened.arrays["matrix"].tolist() == SMALL["matrix"].tolist()


def test_a_file_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_synced_before_it_has_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []

    def fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        seen.extend(("folder" if is_folder else "file", each.suffix) for each in tmp_path.iterdir())

    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path)
    assert seen == [("file", ".tmp"), ("folder", ".part")]


def test_a_file_of_another_version_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path)
    monkeypatch.setattr(files, "VERSION", files.VERSION + 2)
    for read in (files.open_file, files.read_facts, files.verify):
        with pytest.raises(Damaged, match="is of version 7$"):
            read(path)


def test_a_file_of_the_second_version_is_damaged(tmp_path: Path) -> None:
    """It had a header and no footer."""
    header = json.dumps({"version": 2, "facts": {}, "arrays": {}}).encode()
    start = b"codeinfo-mapped\n" + struct.pack("<II", len(header), crc32(header)) + header
    path = tmp_path / "0123.part"
    path.write_bytes(start.ljust(128, b"\0"))
    with pytest.raises(Damaged, match="a version before 3"):
        files.open_file(path)


HUGE = 1 << 60
FORGED: dict[str, dict[str, Any]] = {
    "a file that is longer": {"start": HUGE},
    "a footer that is longer": {"length": (1 << 32) - 1},
    "an array that is longer": {"arrays": {"numbers": ["<u4", [HUGE], 64]}},
    "an array outside": {"arrays": {"numbers": ["<u4", [5], HUGE]}},
    "a small array outside": {"arrays": {"numbers": ["<u4", [1], HUGE]}},
    "an array before the file": {"arrays": {"numbers": ["<u4", [5], -64]}},
    "a negative number of rows": {"arrays": {"numbers": ["<u4", [-5, -1], 64]}},
    "an unknown type": {"arrays": {"numbers": ["x", [5], 64]}},
    "objects of Python": {"arrays": {"numbers": ["O", [1], 64]}},
    "a type without a size": {"arrays": {"numbers": ["S0", [5], 64]}},
    "an array without a place": {"arrays": {"numbers": ["<u4", [5]]}},
    "a place of text": {"arrays": {"numbers": ["<u4", "5", "64"]}},
    "a list in place of arrays": {"arrays": []},
    "no checksums": {"crcs": ""},
    "checksums of text": {"crcs": "checksum"},
    "more checksums": {"crcs": "00" * (1 << 16)},
}


@pytest.mark.parametrize("way", ["read", "mapped"])
@pytest.mark.parametrize("lie", FORGED)
def test_a_footer_that_lies_is_damaged(
    tmp_path: Path, lie: str, way: str, request: pytest.FixtureRequest
) -> None:
    if way == "mapped":
        request.getfixturevalue("mapped")
    path = forged(write(tmp_path))
    opened_and_verified(path)
    with pytest.raises(Damaged):
        files.open_file(forged(path, **FORGED[lie]))


def test_a_footer_of_gigabytes_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is as large as it says: it is sparse."""
    path = write(tmp_path)
    magic = path.read_bytes()[-16:]
    length = 1 << 31
    with path.open("r+b") as file:
        file.seek(length)
        file.write(END.pack(0, length, files.VERSION, 0, magic))
    sizes: list[int] = []

    def pread(descriptor: int, size: int, offset: int) -> bytes:
        sizes.append(size)
        return os.pread(descriptor, min(size, 1 << 20), offset)

    monkeypatch.setattr(files.posix, "pread", pread)
    with pytest.raises(Damaged, match="bytes"):
        files.open_file(path)
    assert max(sizes) <= files.MAX_FOOTER_BYTES


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.symlink_to(write(path.parent))


KINDS: dict[str, Callable[[Path], None]] = {
    "folder": _folder,
    "link": _link,
    "fifo": os.mkfifo,
    "empty": Path.touch,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_damaged_and_hangs_nobody(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "0123.part"
    KINDS[kind](path)
    before = len(os.listdir("/dev/fd"))
    for read in (files.open_file, files.read_facts, files.verify):
        with pytest.raises(Damaged):
            read(path)
    assert len(os.listdir("/dev/fd")) == before


def test_a_sector_that_the_disk_cannot_read_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path)

    def broken(*arguments: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(files.posix, "pread", broken)
    with pytest.raises(Damaged, match="cannot be read"):
        files.open_file(path)


def test_a_missing_file_is_not_damaged(tmp_path: Path) -> None:
    for read in (files.open_file, files.read_facts, files.verify):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "0123.part")


def test_small_files_need_no_descriptor_and_larger_ones_one(tmp_path: Path) -> None:
    small, large = write(tmp_path), write(tmp_path, LARGE)
    before = len(os.listdir("/dev/fd"))
    opened = [files.open_file(path) for path in (small, small, large)]
    assert len(os.listdir("/dev/fd")) == before + 1
    del opened
    assert len(os.listdir("/dev/fd")) == before
