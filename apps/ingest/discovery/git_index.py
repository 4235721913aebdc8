"""Reads the tracked files from git's index file (https://git-scm.com/docs/index-format).

The index is untrusted: it is opened like any file of a root, and its size is limited. A malformed
index raises an error; it never shortens the list.
"""

import os
import re
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any, NamedTuple

from apps.index.root_directory import RootDirectory, reason_of
from apps.index.types import Check, never_cancelled
from apps.ingest.discovery.refusal import refused
from apps.ingest.discovery.repository import Repository, has_objects

# The Linux kernel's index has 90,000 entries in 10 MB.
MAX_INDEX_BYTES = 64_000_000
MAX_ENTRIES = 500_000
# The longest path that Linux opens.
MAX_PATH_BYTES = 4_096
ENTRIES_PER_CHECK = 1_000

HEADER = struct.Struct(">4sLL")  # DIRC, version, number of entries
SECTION = struct.Struct(">4sL")  # name, size
# Times, device, inode, mode, owner and size of a file as it was, modulo 2^32.
STAT = struct.Struct(">8xLL8xL8xL")  # seconds and nanoseconds of its modification, mode, size
FLAGS = struct.Struct(">H")
EXTENDED, NAME_LENGTH = 0x4000, 0x0FFF
SKIP_WORKTREE = 0x4000  # of the extended flags
GITLINK = 0o160000  # the mode of a submodule
VERSIONS = (2, 3, 4)

MALFORMED = (ValueError, IndexError, struct.error)
# An empty part, one that starts with a dot, or NUL.
SUSPICIOUS = re.compile(rb"(?:^|/)(?:[./]|$)|\0")
NOT_IN_A_PATH = frozenset({b"", b".", b"..", b".git"})
DAMAGED = "is broken: its index is damaged"

NOTHING_TRACKED = "nothing tracked by git. `git add` the files, or ingest it as a plain folder"
INDEX_MISSING = "git index missing: nothing is checked out. `git reset` makes the index again"


class Kind(Enum):
    """What an entry of an index stands for."""

    FILE = 0
    SUBMODULE = 1
    ABSENT = 2  # a sparse checkout leaves it out of the work tree


class Entry(NamedTuple):
    """A tracked file, submodule or folder."""

    kind: Kind
    size: int  # bytes, modulo 2^32, as git last saw it
    mtime: tuple[int, int] = (0, 0)  # seconds and nanoseconds, modulo 2^32, as git last saw it
    object_id: bytes = b""  # SHA-1 or SHA-256 of its blob


class Index(NamedTuple):
    """The tracked paths below a root, relative to it. A path that ends with a slash is a folder
    that a sparse checkout left out; "" is the root itself. Names that are not UTF-8 have surrogate
    escapes.

    is_staged: something was added since the last commit, as far as git has noted it
    written: when git wrote it, seconds
    """

    entries: Mapping[str, Entry]
    is_staged: bool = False
    written: int = 0


def read_index(repository: Repository, root: Path, check: Check = never_cancelled) -> Index:
    """Read the index of a repository. Raises Unavailable GIT_FAILED."""
    content = _content(repository.git_dir)
    if content is None:
        return Index({})  # nothing was ever added
    data, written = content
    inside = root.relative_to(repository.work_tree).parts
    prefix = b"".join(os.fsencode(part) + b"/" for part in inside)
    names, is_staged = _names(data, check)
    # A path in a merge conflict has several entries.
    entries = {
        os.fsdecode(path): entry
        for name, entry in names
        if (path := _beneath(prefix, name)) is not None
    }
    return Index(entries, is_staged, written)


def state_of_index(repository: Repository) -> tuple[int, ...] | None:
    """Return inode, size, modification and change time, of which one differs whenever git has
    written the index; None if there is none."""
    try:
        status = (repository.git_dir / "index").lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def count_tracked(repository: Repository) -> int:
    """Return how many files git tracks, as the head of its index says; -1 if that is not known."""
    try:
        with RootDirectory(repository.git_dir) as folder:
            head = folder.read("index", HEADER.size)
    except OSError:
        return -1
    return int(HEADER.unpack(head)[2]) if len(head) == HEADER.size else -1


def lacks_index(repository: Repository) -> bool:
    """Whether a repository has objects and no index, so that it cannot be told what it tracks."""
    return not (repository.git_dir / "index").exists() and has_objects(repository)


def _beneath(prefix: bytes, name: bytes) -> bytes | None:
    if name.startswith(prefix):
        return name[len(prefix) :]
    return b"" if name.endswith(b"/") and prefix.startswith(name) else None


def _content(git_dir: Path) -> tuple[bytes, int] | None:
    """Return the bytes of an index, and `Index.written`."""
    try:
        with RootDirectory(git_dir) as folder:
            # Before the content, which may become newer.
            written = int(folder.stat("index").st_mtime)
            data = folder.read("index", MAX_INDEX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(f"cannot be read: {reason_of(error)}: index") from error
    if len(data) > MAX_INDEX_BYTES:
        raise refused(f"is too large: its index has more than {MAX_INDEX_BYTES:,} bytes")
    return data, written


def _names(data: bytes, check: Check) -> tuple[list[tuple[bytes, Entry]], bool]:
    """Return every path and its entry, and `Index.is_staged`.

    The length of the object ids follows from the hash at the end. If the hash is left out
    (index.skipHash), both lengths are tried.
    """
    if len(data) < HEADER.size or not data.startswith(b"DIRC"):
        raise refused(DAMAGED)
    version = HEADER.unpack_from(data)[1]
    if version not in VERSIONS:
        raise refused(f"has an index of version {version}")
    makes = (sha1, sha256)
    hashed = next((make for make in makes if _hash(data, make) == _tail(data, make)), None)
    for make in (hashed,) if hashed else [make for make in makes if not any(_tail(data, make))]:
        try:
            entries = _Entries(data, version, make().digest_size)
            return _parsed(entries, check), entries.is_staged
        except MALFORMED:
            continue
    raise refused(DAMAGED)


def _tail(data: bytes, make: Callable[[], Any]) -> bytes:
    return data[-make().digest_size :]


def _hash(data: bytes, make: Callable[[], Any]) -> bytes:
    hasher = make()
    hasher.update(memoryview(data)[: -hasher.digest_size])
    return bytes(hasher.digest())


@dataclass
class _Entries:
    """The entries of an index whose object ids have `id_bytes` bytes; `position` is that behind
    the entry read last. Raises one of MALFORMED for bytes that are no such index."""

    data: bytes
    version: int
    id_bytes: int
    position: int = HEADER.size
    is_staged: bool = False  # as in Index

    @property
    def end(self) -> int:
        """Position of the hash."""
        return len(self.data) - self.id_bytes

    def names(self) -> Iterator[tuple[bytes, Entry]]:
        """Yield paths and entries. The path of a folder that is not checked out ends with a
        slash."""
        name = b""
        for _ in range(HEADER.unpack_from(self.data)[2]):
            start = self.position
            seconds, nanoseconds, mode, size = STAT.unpack_from(self.data, start)
            self.position += STAT.size + self.id_bytes
            object_id = self.data[start + STAT.size : self.position]
            flags = self._flags()
            skipped = flags & EXTENDED and self.version > 2 and self._flags() & SKIP_WORKTREE
            length = flags & NAME_LENGTH
            name = self._compressed(name) if self.version == 4 else self._padded(start, length)
            is_folder = stat.S_ISDIR(mode)
            if is_folder != name.endswith(b"/") or (is_folder and not skipped):
                raise ValueError("a folder that is checked out")
            kind = Kind.SUBMODULE if mode == GITLINK else Kind.FILE
            kind = Kind.ABSENT if skipped else kind
            yield name, Entry(kind, size, (seconds, nanoseconds), object_id)

    def _flags(self) -> int:
        (flags,) = FLAGS.unpack_from(self.data, self.position)
        self.position += FLAGS.size
        return int(flags)

    def _padded(self, start: int, length: int) -> bytes:
        """A name, and zeros behind it up to a multiple of eight bytes; a long one is as long as
        the zeros say."""
        begin = self.position
        end = begin + length
        if length == NAME_LENGTH:
            end = self.data.index(b"\0", end, begin + MAX_PATH_BYTES + 1)
        if self.data[end]:
            raise ValueError("a name without an end")
        self.position = start + ((end - start + 8) & ~7)
        return self.data[begin:end]

    def _compressed(self, previous: bytes) -> bytes:
        """A name as the number of bytes that the name before loses, and those that come instead."""
        byte = self.data[self.position]
        lost = byte & 127
        while byte & 128 and lost < MAX_PATH_BYTES:
            self.position += 1
            byte = self.data[self.position]
            lost = ((lost + 1) << 7) + (byte & 127)
        if lost > len(previous):
            raise ValueError("a name that is shorter than nothing")
        begin = self.position + 1
        end = self.data.index(b"\0", begin, begin + MAX_PATH_BYTES + 1)
        self.position = end + 1
        return previous[: len(previous) - lost] + self.data[begin:end]


def _parsed(entries: _Entries, check: Check) -> list[tuple[bytes, Entry]]:
    names: list[tuple[bytes, Entry]] = []
    total = 0
    for name, entry in entries.names():
        names.append((name, entry))
        total += len(name)
        if len(name) > MAX_PATH_BYTES:
            raise refused("has a path that is too long")
        if len(names) > MAX_ENTRIES or total > MAX_INDEX_BYTES:
            raise refused(f"is too large: codeinfo reads up to {MAX_ENTRIES:,} paths")
        if len(names) % ENTRIES_PER_CHECK == 0:
            check()
    _check_sections(entries)
    for name, _ in names:
        _check_path(name)
    return names


def _check_sections(entries: _Entries) -> None:
    """The sections between the entries and the hash must fill the space. Those whose name begins
    with a small letter change what the entries mean."""
    start = entries.position
    while start < entries.end:
        name, size = SECTION.unpack_from(entries.data, start)
        if name == b"TREE":
            # Its first entry is the root: git notes -1 if the index is no tree that it has written.
            begin = start + SECTION.size
            entries.is_staged = entries.data.startswith(b"\0-1 ", begin)
        if name == b"link":
            raise refused(
                "has a split index, which codeinfo does not read. "
                "`git update-index --no-split-index` makes it one file again"
            )
        if not name[:1].isupper() and name != b"sdir":
            raise refused("has an index with a section that codeinfo does not know")
        start += SECTION.size + size
    if start != entries.end:
        raise ValueError("sections of another length")


def _check_path(name: bytes) -> None:
    """Raise Unavailable GIT_FAILED for a path that leads out of the work tree. git writes none."""
    if not SUSPICIOUS.search(name):  # most are
        return
    parts = name.lower().removesuffix(b"/").split(b"/")
    if b"\0" in name or any(part in NOT_IN_A_PATH for part in parts):
        raise refused("has a path that leads out of it")
