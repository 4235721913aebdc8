"""Workers that are killed (kill -9) one after the other.

`main` forks them from a process that has loaded all that takes long; they work on the database and
data folder that its environment names. Each does what a start does, sees that parts and texts are
exactly those of the live files, changes files and ingests them; somewhere in all this it dies, at
another step each time, spread over all steps of such a life. A step is a statement of either
database, or what is before and after a file is synced, gets its name or is deleted.
"""

import functools
import itertools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import connection

from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
from apps.embedding.static import MODEL_ID
from apps.index.mapped import collecting, lists
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.texts import get_texts, text_index
from apps.ingest import services
from apps.ingest.runs import batches, queue, recovery, sweep
from tests.support import parts

FILES = 12


class Steps:
    """Counts steps, and kills this process at one of them."""

    def __init__(self, die_at: int) -> None:
        self.die_at = die_at
        self.count = itertools.count(1)
        self.paused = False

    def __call__(self) -> None:
        if not self.paused and next(self.count) == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def change(folder: Path, number: int) -> None:
    """Of a few files one is new, one is gone and one has other words, each time others."""
    for file in range(FILES):
        path = folder / f"notes_{file}.txt"
        if (file + number) % FILES == 0:
            path.unlink(missing_ok=True)
        elif number % FILES == file or not path.exists():
            path.write_text(f"Note {file}, written in round {number}.\n\nWordOf{number} stands.\n")


def put_back(folder: Path) -> None:
    """As it is published: what a dead run was about to replace has not changed."""
    files = dict(SourceFile.objects.live().ingested().values_list("path", "sha256"))
    texts = get_texts().read(files.values())
    for path, key in files.items():
        (folder / path).write_text(texts[key])


def watch(steps: Steps) -> None:
    """Have `steps` called at every step of this process."""
    for owner, verb in ((os, "fsync"), (os, "rename"), (Path, "replace"), (Path, "unlink")):
        setattr(owner, verb, _around(getattr(owner, verb), steps))
    connect = text_index.open_file

    def traced(path: Path, mode: str) -> Any:
        database = connect(path, mode)
        database.set_trace_callback(lambda sql: steps())
        return database

    text_index.open_file = traced
    connection.execute_wrappers.append(_before(steps))


def _before(steps: Steps) -> Callable[..., Any]:
    def wrapper(execute: Callable[..., Any], *statement: Any) -> Any:
        steps()
        return execute(*statement)

    return wrapper


def _around(real: Callable[..., Any], steps: Steps) -> Callable[..., Any]:
    @functools.wraps(real)
    def stepping(*args: Any, **options: Any) -> Any:
        steps()
        result = real(*args, **options)
        steps()
        return result

    return stepping


def start() -> None:
    """What a start does."""
    recovery.OWNER = recovery.signature()
    # What a merge was killed over would be kept for ten minutes.
    collecting.MERGE_SECONDS = -1
    recovery.recover()
    sweep.sweep()


def check() -> None:
    """Parts and texts are what the rows say, and nothing else."""
    for root in Root.objects.all():
        rows = SourceFile.objects.filter(root=root)
        live = rows.live()
        assert parts.chunk_ids(root) == parts.ids_of_rows(live), "parts"
        assert rows.count() == live.count(), "rows"
    assert not parts.unlisted_parts() and not [*lists.folder().glob("*.tmp")], "files"
    keys = set(SourceFile.objects.live().ingested().values_list("sha256", flat=True))
    assert len(get_texts().read(keys)) == len(keys) == len(get_texts().keys()), "texts"


def work(folder: Path, number: int, die_at: int) -> int:
    """One life of a worker; how many steps it took, where none of them was its last."""
    batches.READ_AT_ONCE, batches.ROWS_PER_WRITE = 3, 3
    steps = Steps(die_at)
    watch(steps)
    start()
    steps.paused = True
    check()
    latest = IngestRun.objects.order_by("-queued_at").first()
    if latest is not None and latest.state == "completed":
        live = SourceFile.objects.live().ingested().values_list("path", flat=True)
        assert set(live) == {path.name for path in folder.iterdir()}, "folder"
    if number % 2:
        put_back(folder)
    change(folder, number)
    if not IngestRun.objects.live().exists():
        services.start_run(path=str(folder), name="notes", model=MODEL_ID)
    steps.paused = False
    queue.drain()
    return next(steps.count) - 1


def work_beside(sibling: Path, folder: Path, number: int, die_at: int) -> int:
    """As `work`, for a folder that shares most files with `sibling`, which stays whole. In every
    third life the folder is removed before, and is a copy again."""
    batches.READ_AT_ONCE, batches.ROWS_PER_WRITE = 3, 3
    steps = Steps(die_at)
    watch(steps)
    start()
    steps.paused = True
    check()
    whole = Root.objects.filter(path=str(sibling)).first()
    live = SourceFile.objects.filter(root=whole).live().ingested()
    assert whole is None or live.count() == whole.files == FILES, "sibling"
    if whole is None:
        change(sibling, 0)
        for file in range(FILES):
            (sibling / f"notes_{file}.txt").write_text(f"Note {file}.\n\nWordOf{file} stands.\n")
        services.start_run(path=str(sibling), name="sibling", model=MODEL_ID)
        queue.drain()
    for path in sibling.iterdir() if number % 3 == 0 else ():
        (folder / path.name).write_bytes(path.read_bytes())
    queue.drain()  # what an earlier life has queued
    steps.paused = False
    if number % 3 == 0 and Root.objects.filter(path=str(folder)).exists():
        services.remove(str(folder))
    steps.paused = True
    change(folder, number)
    if not IngestRun.objects.live().exists():
        services.start_run(path=str(folder), name="notes", model=MODEL_ID)
    steps.paused = False
    queue.drain()
    steps.paused = True
    shared = {each.store for each in Root.objects.all()}
    assert len(shared) == 1, "shared"
    return next(steps.count) - 1


def forked(call: Callable[[], int]) -> int | None:
    """What `call` answers in a process of its own; None where that was killed."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.write(theirs, str(call()).encode())
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    os.close(theirs)
    with open(ours, "rb") as answer:
        lines = answer.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        sys.exit("a worker failed")
    return int(lines) if status == 0 else None


def main(folder: Path, kills: int, sibling: Path | None = None) -> None:
    """Prints the steps of a life and how many lives were cut short."""
    get_embedder(DEFAULT_MODEL).embed_query("warm")
    life = functools.partial(work_beside, sibling) if sibling else work
    # All but the first have an old generation to delete as well, or the whole root.
    in_peace = [forked(functools.partial(life, folder, number, 0)) or 0 for number in range(4)]
    steps = [in_peace[3], *in_peace[1:3]] if sibling else in_peace[1:2]
    deaths = [
        forked(functools.partial(life, folder, number + 4, 1 + number * of_kind // kills)) is None
        for number in range(kills)
        for of_kind in [steps[(number + 4) % len(steps)]]
    ]
    forked(functools.partial(life, folder, kills + 4, 0))
    forked(_started)
    print(min(steps), sum(deaths))


def _started() -> int:
    start()
    check()
    return 0
