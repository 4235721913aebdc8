"""Makes a backup: copy, manifest, archive. It gets its name when it is complete and on the disk."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

from django.utils import timezone

from apps.core.config import config
from apps.core.errors import Conflict, InvalidInput, Unavailable, reason_of
from apps.core.system import posix
from apps.core.values.times import wire_time
from apps.index.types import Check
from apps.site.backup import archive, copying
from apps.site.backup.copying import Report
from apps.site.backup.manifest import DATABASE, Manifest, migrations_of


def make(file: Path, *, force: bool, check: Check, report: Report) -> dict[str, Any]:
    """Make a backup of this installation. Return its size and its roots.

    file: absolute path
    force: whether to replace an existing file, when the new archive is complete

    Raises Conflict (NOT_EMBEDDED, EXISTS), InvalidInput for an unsuitable path, and Unavailable if
    a store cannot be copied or the disk is full.
    """
    copying.refuse_other_database()
    _refuse_target(file, force)
    try:
        size, files = copying.size()
        # The copy, and the archive.
        archive.refuse_full_disk(file.parent, "while it is made, a backup needs", 2 * size, files)
        with partial_folder(file) as folder:
            return _made(file, folder, check, report, force=force)
    except OSError as error:
        raise Unavailable(
            f"The backup could not be written: {reason_of(error)}", code="NOT_WRITTEN"
        ) from error


def _made(file: Path, folder: Path, check: Check, report: Report, *, force: bool) -> dict[str, Any]:
    copy, packed = folder / "copy", folder / "archive"
    roots = copying.copy_all(copy, check, report)
    manifest = Manifest(
        created=wire_time(timezone.now()),
        members=archive.members_of(copy, check),
        migrations=migrations_of(copy / DATABASE),
    )
    report(f"writing the archive of {manifest.size / 1e6:,.1f} MB")
    archive.write(packed, manifest, copy, check)
    _refuse_target(file, force)
    packed.replace(file)
    posix.sync_folder(file.parent)
    return {
        "file": str(file),
        "bytes": file.stat().st_size,
        "members": len(manifest.members),
        "roots": roots,
    }


def _refuse_target(file: Path, force: bool) -> None:
    if not file.is_absolute():
        raise InvalidInput("The path must be absolute.")
    if not file.parent.is_dir():
        raise InvalidInput(f"There is no folder {file.parent}.")
    if file.is_dir() or (file.exists() and not file.is_file()):
        raise InvalidInput(f"{file} is not a file.")
    if file.is_symlink():
        raise InvalidInput(f"{file} is a link: name the file that it leads to.")
    if _is_own(file):
        raise InvalidInput(
            f"{file} is a place of codeinfo's own data: in the data folder, a backup must be "
            "directly in it and end in .tar.gz."
        )
    if file.exists() and not force:
        raise Conflict(f"{file} is there already: --force replaces it.", code="EXISTS")


def _is_own(file: Path) -> bool:
    """Whether a file with this path would be, or replace, a part of codeinfo's data."""
    place = file.parent.resolve()
    database = copying.database_path().absolute()
    if place == database.parent.resolve() and file.name.startswith(database.name):
        return True
    data = config().data_dir.resolve()
    if place == data:
        return not file.name.endswith(".tar.gz")
    return data in place.parents


@contextmanager
def partial_folder(file: Path) -> Iterator[Path]:
    """Yield a private folder beside `file`, on the same disk. Removes those of killed backups."""
    start = f".{file.name[:100]}."
    for left in file.parent.glob(f"{escape(start)}*.partial"):
        _remove_if_left(left)
    folder = Path(tempfile.mkdtemp(prefix=start, suffix=".partial", dir=file.parent))
    descriptor = posix.open_folder(folder)
    try:
        with suppress(OSError):  # NFS cannot lock folders; there, none counts as left over
            posix.lock(descriptor)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):
        descriptor = posix.open_nofollow(folder, os.O_RDONLY | posix.O_DIRECTORY)
        try:
            if posix.lock(descriptor, wait=False):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
