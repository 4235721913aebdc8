"""What a data folder has, and what happens to a file of it on a disk."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

BLOCK = 4_096

# Kind → pattern of its files in a data folder. Of several, the largest is harmed.
KINDS: Mapping[str, str] = {
    "database": "codeinfo.sqlite3",
    "log of the database": "codeinfo.sqlite3-wal",
    "index of that log": "codeinfo.sqlite3-shm",
    "part": "index/*.part",
    "texts": "texts/*.zst",
    "index of the texts": "texts/index.sqlite3",
    "log of that index": "texts/index.sqlite3-wal",
    "n-grams": "grams/*.grams",
    "secret key": "secret.key",
    "address of the server": "server.json",
    "lock of the server": "server.lock",
    "lock of the data": "data.lock",
    "lock of changes": "changes.lock",
    "lock of a freeze": "freeze.lock",
    "last scrub": "scrub.json",
    "log of the server": "logs/server.log",
    "log of crashes": "logs/crashes.log",
    "password of the administrator": "admin-password.txt",
    "folder of parts": "index",
    "folder of texts": "texts",
    "folder of n-grams": "grams",
    "folder of logs": "logs",
}


def flip(path: Path) -> None:
    """Of a database, where a page in its middle begins: its rows have no checksums. An empty file
    gets a byte."""
    content = bytearray(path.read_bytes() or b"x")
    at = len(content) // 2
    if path.name.endswith(".sqlite3"):
        at = at // BLOCK * BLOCK
    content[at] ^= 0xFF
    _overwrite(path, content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = len(content) // 2 // BLOCK * BLOCK
    content[at : at + BLOCK] = bytes(len(content[at : at + BLOCK]))
    _overwrite(path, content)


def delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def become_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"no folder")


def _overwrite(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:
        file.write(content)


OF_FILES: tuple[Callable[[Path], None], ...] = (flip, truncate, zero, delete, become_a_folder)
OF_FOLDERS: tuple[Callable[[Path], None], ...] = (delete, become_a_file)


def harms_of(kind: str) -> tuple[Callable[[Path], None], ...]:
    return OF_FOLDERS if kind.startswith("folder") else OF_FILES


def file_of(data: Path, kind: str) -> Path:
    return max(data.glob(KINDS[kind]), key=lambda path: path.stat().st_size)
