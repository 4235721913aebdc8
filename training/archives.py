"""The files in the archive of a package: wheel, zip, tar or deb."""

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

# Larger files are data, or several sources in one.
LARGEST = 1_000_000


def _any(_: str) -> bool:
    return True


def files(archive: Path, accept: Callable[[str], bool] = _any) -> Iterator[tuple[str, bytes]]:
    """Path and content of each regular file of at most LARGEST bytes that `accept` returns True
    for, in the order of the archive."""
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if not info.is_dir() and info.file_size <= LARGEST and accept(info.filename):
                    yield info.filename, opened.read(info)
    else:
        with _tar(archive) as opened:
            for member in opened:
                path = member.name.removeprefix("./")
                if member.isfile() and member.size <= LARGEST and accept(path):
                    content = opened.extractfile(member)
                    if content is not None:
                        yield path, content.read()


def _tar(archive: Path) -> tarfile.TarFile:
    """A tar file, or the one inside a Debian package."""
    if archive.suffix != ".deb":
        return tarfile.open(archive)
    command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
    inner = subprocess.run(command, capture_output=True, check=True).stdout
    return tarfile.open(fileobj=io.BytesIO(inner))
