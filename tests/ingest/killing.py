"""Workers that are killed (kill -9) one after the other.

`main` forks them from a process that has loaded all that takes long; they work on the database,
data folder and Chroma server that its environment names. Each does what a start does, sees that
both stores hold exactly the chunks of the live files, changes files and ingests them; somewhere in
all this it dies, at another step each time, spread over all steps of such a life. A step is a
statement of either database, or the beginning or end of a call of the vector store.
"""

import functools
import itertools
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import connection

from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
from apps.embedding.static import MODEL_ID
from apps.index.chunk_ids import chunk_ids
from apps.index.mapped import files
from apps.index.models import IngestRun, Root, SourceFile
from apps.index.texts import get_texts, text_index
from apps.index.vectors.store import VectorStore, get_store, reset_store
from apps.ingest import services
from apps.ingest.runs import batches, queue, recovery, sweep

# One for each posting: hundreds, of which each is like the other.
MANY = ("INSERT INTO posting", "INSERT INTO naming")
FILES = 12


class Steps:
    """Counts steps, and kills this process at one of them."""

    def __init__(self, die_at: int) -> None:
        self.die_at = die_at
        self.count = itertools.count(1)
        self.paused = False
        # What a Chroma server was sent it may do after the next start has swept. The embedded one
        # does not: it ends first. So nobody is killed while a call is under way.
        self.calling = threading.Lock()

    def __call__(self) -> None:
        if not self.paused and next(self.count) == self.die_at:
            with self.calling:
                os.kill(os.getpid(), signal.SIGKILL)


def change(folder: Path, number: int) -> None:
    """Of a few files one is new, one is gone and one has other words, each time others."""
    for file in range(FILES):
        path = folder / f"notes_{file}.txt"
        if (file + number) % FILES == 0:
            path.unlink(missing_ok=True)
        elif number % FILES == file or not path.exists():
            path.write_text(f"Note {file}, written in round {number}.\n\nWordOf{number} stands.\n")


def watch(steps: Steps) -> None:
    """Have `steps` called at every step of this process."""
    for verb in ("add", "delete", "drop"):
        setattr(VectorStore, verb, _around(getattr(VectorStore, verb), steps))
    files.write = _around(files.write, steps)
    connect = text_index.open_file

    def traced(path: Path, mode: str) -> Any:
        database = connect(path, mode)
        database.set_trace_callback(lambda sql: None if sql.startswith(MANY) else steps())
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
    def stepping(*args: Any) -> Any:
        steps()
        with steps.calling:
            result = real(*args)
        steps()
        return result

    return stepping


def start() -> None:
    """What a start does."""
    recovery.OWNER = recovery.signature()
    recovery.recover()
    sweep.sweep()


def check() -> None:
    """The stores hold what the rows say, and nothing else."""
    in_use = {root.store for root in Root.objects.all()}
    for store in in_use:
        rows = SourceFile.objects.filter(root__store=store)
        live = rows.live()
        expected_ids = {each for file in live for each in chunk_ids(file)}
        assert get_store().ids(store) == expected_ids, "vectors"
        assert rows.count() == live.count(), "rows"
    if in_use:
        keys = set(SourceFile.objects.live().ingested().values_list("sha256", flat=True))
        assert len(get_texts().read(keys)) == len(keys) == get_texts().count(), "texts"
    assert get_store().collections() == in_use, "roots"


def work(folder: Path, number: int, die_at: int) -> int:
    """One life of a worker; how many steps it took, where none of them was its last."""
    batches.READ_AT_ONCE, batches.ROWS_PER_WRITE = 3, 3
    steps = Steps(die_at)
    watch(steps)
    start()
    steps.paused = True
    check()
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
    get_store()
    reset_store()
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
