"""What programs have written and synced, and what a disk may have of it after power was lost.

A file has all that was written before it was last synced, and any of the blocks written since. A
folder has the names that it had when it was last synced, or at a moment since: its changes are not
reordered, and a rename is one of them. A file system may keep more, and none may keep less.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

BLOCK = 4_096


class Event(NamedTuple):
    """what, values: a method of Disk, and what it is called with"""

    what: str
    values: tuple[Any, ...]


@dataclass
class _File:
    synced: bytes = b""
    since: list[Callable[[bytearray], None]] = field(default_factory=list)


@dataclass
class _Folder:
    names: dict[str, int] = field(default_factory=dict)
    # `names` when it was last synced, and after each change since.
    moments: list[dict[str, int]] = field(default_factory=lambda: [{}])

    def change(self, names: dict[str, int]) -> None:
        self.names = names
        self.moments.append(names)


class Disk:
    """Replays a trace. Files and folders have numbers, which are not used twice."""

    def __init__(self, top: Path) -> None:
        """top: a folder of which all is on the disk; their numbers are those of its inodes"""
        self._files: dict[int, _File] = {}
        self._folders: dict[int, _Folder] = {}
        self._top = self._read(top)
        self.promises: list[str] = []

    def _read(self, path: Path) -> int:
        number = path.stat().st_ino
        if path.is_dir():
            names = {child.name: self._read(child) for child in path.iterdir()}
            self._folders[number] = _Folder(names, [names])
        else:
            self._files[number] = _File(path.read_bytes())
        return number

    def apply(self, event: Event) -> None:
        getattr(self, event.what)(*event.values)

    def create(self, folder: int, name: str, number: int, is_folder: bool) -> None:
        if is_folder:
            self._folders[number] = _Folder()
        else:
            self._files[number] = _File()
        self._folders[folder].change(self._folders[folder].names | {name: number})

    def unlink(self, folder: int, name: str) -> None:
        names = self._folders[folder].names
        self._folders[folder].change({k: v for k, v in names.items() if k != name})

    def rename(self, folder: int, name: str, to: int, new: str) -> None:
        number = self._folders[folder].names[name]
        if to == folder:
            names = {k: v for k, v in self._folders[folder].names.items() if k != name}
            self._folders[folder].change(names | {new: number})
        else:
            self._folders[to].change(self._folders[to].names | {new: number})
            self.unlink(folder, name)

    def write(self, file: int, offset: int, data: bytes) -> None:
        for start in range(0, len(data), BLOCK):
            piece, at = data[start : start + BLOCK], offset + start

            def applied(content: bytearray, piece: bytes = piece, at: int = at) -> None:
                content.extend(bytes(max(0, at - len(content))))
                content[at : at + len(piece)] = piece

            self._files[file].since.append(applied)

    def truncate(self, file: int, size: int) -> None:
        def applied(content: bytearray) -> None:
            content.extend(bytes(max(0, size - len(content))))
            del content[size:]

        self._files[file].since.append(applied)

    def sync(self, file: int) -> None:
        content = bytearray(self._files[file].synced)
        for change in self._files[file].since:
            change(content)
        self._files[file] = _File(bytes(content))

    def sync_folder(self, folder: int) -> None:
        self._folders[folder].moments = [self._folders[folder].names]

    def promise(self, text: str) -> None:
        self.promises.append(text)

    def after_a_loss(self, folder: Path, random: Random, *, is_worst: bool) -> None:
        """Write what the disk has, to a new folder. At worst it has nothing that was not synced."""
        self._write(self._top, folder, random, 0.0 if is_worst else random.choice((0.0, 0.5, 1.0)))

    def _write(self, number: int, path: Path, random: Random, kept: float) -> None:
        """kept: the share of what was written since the last sync"""
        path.mkdir(mode=0o700)
        moments = self._folders[number].moments
        names = random.choice(moments) if kept == 0.5 else moments[-1 if kept else 0]
        for name, entry in names.items():
            if entry in self._folders:
                self._write(entry, path / name, random, kept)
                continue
            content = bytearray(self._files[entry].synced)
            for change in self._files[entry].since:
                if random.random() < kept:
                    change(content)
            (path / name).write_bytes(content)
            (path / name).chmod(0o600)
