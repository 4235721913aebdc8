"""A data folder whose power is cut: on a file system that records what is synced."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from tests.power.recording import Recording, recorded


class Power:
    """`on` and `lose` in turn. No process has a file of `data` open at either moment, but for those
    that have just been killed."""

    def __init__(self, data: Path, backing: Path) -> None:
        """backing: a folder that need not exist, on a disk with room"""
        self._data, self._backing = data, backing
        self._mounted = ExitStack()
        self._recording: Recording | None = None

    @property
    def is_recorded(self) -> bool:
        return self._recording is not None

    def on(self) -> None:
        """Record from now on."""
        shutil.rmtree(self._backing, ignore_errors=True)
        self._data.mkdir(exist_ok=True)
        shutil.move(self._data, self._backing)
        self._recording = self._mounted.enter_context(recorded(self._data, self._backing))

    def lose(self, random: Random) -> None:
        """Leave what a disk has that loses its power now."""
        recording, self._recording = self._recording, None
        assert recording is not None
        self._mounted.close()
        for event in recording.events:
            recording.disk.apply(event)
        self._data.rmdir()
        recording.disk.after_a_loss(self._data, random, is_worst=random.random() < 0.5)
        shutil.rmtree(self._backing)

    def close(self) -> None:
        """Leave what was written."""
        if self.is_recorded:
            self._recording = None
            self._mounted.close()
            self._data.rmdir()
            shutil.move(self._backing, self._data)


def can_be_lost() -> bool:
    """Whether a file system can be mounted here."""
    with TemporaryDirectory() as folder:
        backing = Path(folder) / "backing"
        backing.mkdir()
        try:
            with recorded(Path(folder) / "mount", backing):
                return True
        except pytest.skip.Exception:
            return False
