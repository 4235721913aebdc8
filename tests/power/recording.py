"""A data folder on a file system that records what is written to it."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from tests.house.sources import HOME
from tests.power.trace import Disk, Event
from tests.support.waiting import wait_until

SECONDS = 60


@dataclass
class Recording:
    """folder: the file system
    disk: what was there before"""

    folder: Path
    disk: Disk
    events: list[Event] = field(default_factory=list)

    def promise(self, text: str) -> None:
        """Note that a client was told this, after all that is written by now."""
        os.setxattr(self.folder, "user.promise", text.encode())

    def losses(self, points: list[int], seed: int, folder: Path) -> Iterator[tuple[Path, set[str]]]:
        """Yield for each of some events, ascending, a folder as it may be if power is lost after
        it, and the promises until then. Called once."""
        done, random = 0, Random(seed)
        for number, point in enumerate(points):
            for event in self.events[done:point]:
                self.disk.apply(event)
            done = point
            target = folder / f"{number}-lost-{point}"
            target.mkdir()
            # A client that was told something just now may find that it was not synced.
            is_worst = self.events[point - 1].what == "promise"
            self.disk.after_a_loss(target / "data", random, is_worst=is_worst)
            yield target, set(self.disk.promises)

    def promised_at(self) -> list[int]:
        """The points right after a promise."""
        return [n + 1 for n, event in enumerate(self.events) if event.what == "promise"]


@contextmanager
def recorded(folder: Path, backing: Path) -> Iterator[Recording]:
    """Mount `folder`, which has what `backing` has, and write to it inside the block; its events
    are complete afterwards. Skips the test where nothing can be mounted."""
    trace = backing.with_name("trace")
    recording = Recording(folder, Disk(backing))
    with mounted("tests.power.filesystem", backing, folder, trace):
        yield recording
    recording.events = pickle.loads(trace.read_bytes())


@contextmanager
def mounted(module: str, backing: Path, folder: Path, *more: Path) -> Iterator[None]:
    """Mount `folder` by a module. Skips the test where nothing can be mounted."""
    folder.mkdir()
    command = [sys.executable, "-m", module, *map(str, (backing, folder, *more))]
    with subprocess.Popen(command, cwd=HOME, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: folder.is_mount() or process.poll() is not None, SECONDS)
        if process.poll() is not None:
            assert process.stderr is not None
            pytest.skip(f"no file system can be mounted: {process.stderr.read().strip()[-300:]}")
        try:
            yield
        finally:
            unmount = ["umount", str(folder)]
            # A process that was killed closes its files in a moment.
            wait_until(lambda: not subprocess.run(unmount, capture_output=True).returncode, SECONDS)
            process.wait(SECONDS)
