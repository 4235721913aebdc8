"""The archive: a gzipped tar. Its first member is the manifest, which lists the others."""

import gzip
import hashlib
import io
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from apps.core.errors import Unavailable
from apps.core.system import disk, posix
from apps.index.types import Check
from apps.site.backup.manifest import (
    LONGEST_MANIFEST,
    MANIFEST,
    NONSENSE,
    Manifest,
    Member,
    broken,
)

PIECE = 1 << 20
# Space that must stay free beside what is written, in bytes.
RESERVE = 100 << 20
# gzip level. Texts compress to a fifth, vectors hardly. A higher level takes three times as long
# for a few per cent.
LEVEL = 1
# Largest read of the archive at once. Headers are small, and contents are read in pieces.
MOST_READ = 1 << 22


def members_of(folder: Path, check: Check) -> dict[str, Member]:
    """Return the files of a copy, by their names in the archive."""
    members = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        check()
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        members[path.relative_to(folder).as_posix()] = Member(path.stat().st_size, digest)
    return members


def write(file: Path, manifest: Manifest, folder: Path, check: Check) -> None:
    """Write an archive of a copy, and sync it to the disk. Raises OSError, also if `file`
    exists."""
    descriptor = posix.open_nofollow(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with open(descriptor, "wb") as opened:
        with (
            gzip.GzipFile(filename="", fileobj=opened, mode="wb", compresslevel=LEVEL) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
        ):
            data = manifest.as_bytes()
            tar.addfile(_entry(MANIFEST, len(data)), io.BytesIO(data))
            for name, member in manifest.members.items():
                with (folder / name).open("rb") as content:
                    tar.addfile(_entry(name, member.size), _Checked(content, check))
        opened.flush()
        os.fsync(descriptor)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


class _Checked(io.RawIOBase):
    """A file that calls `check` before each read, as it may have gigabytes."""

    def __init__(self, file: IO[bytes], check: Check) -> None:
        self._file = file
        self._check = check

    def read(self, size: int = -1) -> bytes:
        self._check()
        return self._file.read(size)


class Archive:
    """An archive that is read sequentially."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        entry = self._next()
        if entry is None or entry.name != MANIFEST or entry.size > LONGEST_MANIFEST:
            raise broken("it does not begin with a manifest")
        self.manifest = Manifest.read(self._content(entry).read())

    def extract(self, folder: Path, check: Check) -> None:
        """Extract all members to `folder`, which exists. Raises OSError, and InvalidInput
        BACKUP_BROKEN if a member is missing, not listed, or changed."""
        missing = dict(self.manifest.members)
        while (entry := self._next()) is not None:
            check()
            member = missing.pop(entry.name, None)
            if member is None or not entry.isreg() or entry.size != member.size:
                raise broken(f"{entry.name!r} is not what its manifest says")
            target = folder / entry.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if self._written(entry, target, check) != member.sha256:
                raise broken(f"{entry.name!r} has been changed")
        if missing:
            raise broken(f"{min(missing)!r} is missing")

    def _next(self) -> tarfile.TarInfo | None:
        """Return the next member. Raises InvalidInput BACKUP_BROKEN for a malformed header."""
        try:
            entry = self._tar.next()
        except NONSENSE as error:
            raise broken(f"a header cannot be read ({error})") from error
        if entry is not None and entry.size < 0:
            raise broken("a header has a negative size")
        return entry

    def _written(self, entry: tarfile.TarInfo, target: Path, check: Check) -> str:
        digest = hashlib.sha256()
        content = self._content(entry)
        with target.open("xb") as file:
            while piece := content.read(PIECE):
                check()
                digest.update(piece)
                file.write(piece)
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _content(self, entry: tarfile.TarInfo) -> IO[bytes]:
        content = self._tar.extractfile(entry) if entry.isreg() else None
        if content is None:
            raise broken(f"{entry.name!r} is not a file")
        return content


def _tar_in(packed: gzip.GzipFile) -> tarfile.TarFile:
    """Open the tar, which reads the first header. Raises InvalidInput BACKUP_BROKEN."""
    try:
        return tarfile.open(fileobj=cast(IO[bytes], packed), mode="r:")
    except NONSENSE as error:
        raise broken(f"a header cannot be read ({error})") from error


class _Bounded(gzip.GzipFile):
    """Refuses reads that are larger than necessary, such as a header of gigabytes."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or size > MOST_READ:
            raise broken("it asks for too much memory")
        return super().read(size)


@contextmanager
def reading(file: Path) -> Iterator[Archive]:
    """Open an archive. Raises OSError, and InvalidInput BACKUP_BROKEN if it is malformed, also for
    errors in the block."""
    try:
        with (
            file.open("rb") as opened,
            _Bounded(fileobj=opened, mode="rb") as packed,
            _tar_in(packed) as tar,
        ):
            yield Archive(tar)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise broken(str(error) or "it is truncated") from error


def refuse_full_disk(folder: Path, what: str, size: int, files: int) -> None:
    """Raise Unavailable DISK_FULL if a folder has no room for so many bytes and files, and RESERVE.

    what: subject and verb of the sentence, such as "a backup needs"
    """
    size, files = size + RESERVE, files + disk.MIN_FILES
    if free_bytes(folder) < size or posix.free_files(folder) < files:
        raise Unavailable(
            f"{folder} has too little space: {what} {size / 1e9:.1f} GB, and room for "
            f"{files:,} files (inodes).",
            code="DISK_FULL",
        )


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free
