"""What is known of the folders now: which changes wait for their ingest, and why none can.

The threads of `watcher` write it, in the server; others read. A process without them knows nothing.
"""

import math
import threading
import time
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from apps.index.models import IngestRun, Root
from apps.index.types import TERMINAL_STATES

# watch: the kernel tells of changes; poll: the files are looked at again and again
Mode = Literal["watch", "poll", "off"]
# More changes at once, or more folders, are a look at everything.
MAX_TOLD, MAX_FOLDERS = 500, 50
LOOK_SECONDS = 0.01
# The thread that hears of the kernel may not have run for so long on a busy machine.
KERNEL_SECONDS = 0.05
# Changes that were told before are not waited for.
PATIENCE_SECONDS = 5.0
# Of an automatic run that has ingested what it was told. Without a change, its row is deleted.
PUBLISHED_STATES = ("completed", "skipped")
# After a question, more may follow.
ASKED_SECONDS = 60.0


@dataclass(frozen=True)
class Folder:
    """A root's folder.

    looked_at: when nothing was found to have changed in it, last; None if that was not looked at
    problem: why it is not, a sentence; "" if it is
    note: why the mode is not the best one; "" if it is
    waiting: changes that are not ingested yet, relative paths
    is_unknown: anything may have changed
    run: the automatic run that ingests others
    since: when the first of these was told (`time.monotonic`)
    """

    mode: Mode
    looked_at: datetime | None = None
    problem: str = ""
    note: str = ""
    waiting: frozenset[str] = frozenset()
    is_unknown: bool = False
    run: UUID | None = None
    since: float = 0.0

    @property
    def is_behind(self) -> bool:
        """Whether the index lacks changes that are known."""
        return bool(self.waiting) or self.is_unknown or self.run is not None

    @property
    def behind(self) -> str:
        """What the index lacks, in words; "" if nothing is known to be lacking."""
        if self.problem:
            return self.problem
        if self.waiting and not self.is_unknown and self.run is None:
            count = len(self.waiting)
            return f"{count:,} change{'s' * (count != 1)} not ingested yet."
        return "Changes are not ingested yet." if self.is_behind else ""

    def with_told(self, paths: Iterable[str]) -> "Folder":
        waiting = self.waiting.union(paths)
        folders = sum(path.endswith("/") for path in waiting)
        if len(waiting) > MAX_TOLD or folders > MAX_FOLDERS:
            return replace(self, waiting=frozenset(), is_unknown=True)
        return replace(self, waiting=waiting)


@dataclass
class States:
    """The folders of this process. Thread-safe: each value is replaced as a whole.

    look_seconds: of a processor, that the last look at all files of a folder took
    asked_until: when a question is long ago (`time.monotonic`)
    wake: set when the thread has something to do before a change
    turns: how often the changes that the kernel has told were noted
    """

    folders: dict[UUID, Folder] = field(default_factory=dict)
    look_seconds: dict[UUID, float] = field(default_factory=dict)
    asked_until: float = -math.inf
    wake: threading.Event = field(default_factory=threading.Event)
    turns: int = 0

    @property
    def is_asked(self) -> bool:
        return time.monotonic() < self.asked_until

    def forget(self, root: UUID) -> None:
        self.folders.pop(root, None)
        self.look_seconds.pop(root, None)


states = States()


def known(root: Root) -> Folder | None:
    """Return what is known of a root's folder; None if it is not looked at here."""
    return states.folders.get(root.id)


def wait_for(roots: Iterable[Root], seconds: float) -> None:
    """Wait until changes of these folders that are known now are ingested, for at most `seconds`.

    Only for those that are about to be: a folder that is away is not waited for.
    """
    now = time.monotonic()
    if not states.is_asked:
        states.wake.set()  # what is looked at only now and then is looked at now
    states.asked_until = now + ASKED_SECONDS
    deadline = now + seconds
    waiting = {root.id for root in roots}
    pause = threading.Event()
    while waiting := {key for key in waiting if _is_about_to(states.folders.get(key))}:
        left = deadline - time.monotonic()
        if left <= 0 or pause.wait(min(LOOK_SECONDS, left)):
            return


def are_behind(roots: Iterable[Root], seconds: float) -> bool:
    """Whether a folder turns out to have changed. Wait for at most `seconds`, until the kernel must
    have told of what was written before this call."""
    keys = [root.id for root in roots]
    if not any((one := states.folders.get(key)) and one.mode == "watch" for key in keys):
        return False
    # What was written while a turn ends is noted in the next one.
    last, now = states.turns + 2, time.monotonic()
    while not any(_is_about_to(states.folders.get(key)) for key in keys):
        waited = time.monotonic() - now
        if waited > seconds or (states.turns >= last and waited > KERNEL_SECONDS):
            return False
        states.wake.set()
        time.sleep(LOOK_SECONDS)
    return True


def _is_about_to(folder: Folder | None) -> bool:
    if folder is None or not folder.is_behind or folder.problem:
        return False
    if time.monotonic() - folder.since > PATIENCE_SECONDS:
        return False  # a run fails, waits for somebody, or for another run
    if folder.run is None or folder.waiting or folder.is_unknown:
        return True
    return not run_is_in(folder.run, TERMINAL_STATES)


def run_is_in(run: UUID, states: Container[str]) -> bool:
    """Whether an automatic run is in one of these states. A row that is deleted was in all."""
    found = IngestRun.objects.filter(id=run).values_list("state", flat=True)
    return all(state in states for state in found)


def behind(roots: Iterable[Root], name: Callable[[Root], str]) -> str:
    """Return which of these roots lack changes that are known, a sentence each; "" for none."""
    folders = [(root, states.folders.get(root.id)) for root in roots]
    return " ".join(
        f"{name(root)}: {one.behind}"
        for root, one in folders
        if one and one.behind and not _is_ingested(one)
    )


def _is_ingested(folder: Folder) -> bool:
    """Whether all that is known was in a run that has published it, which is not noted yet."""
    if folder.problem or folder.waiting or folder.is_unknown or folder.run is None:
        return False
    return run_is_in(folder.run, PUBLISHED_STATES)
