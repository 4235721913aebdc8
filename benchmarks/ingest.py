"""How fast a folder becomes searchable, and where the time goes.

    python -m benchmarks.ingest            ingests the installed Django
    python -m benchmarks.ingest FOLDER     ingests that folder

Prints one table. The same rows are then added to an empty store, nothing else being done, in the
same run: the ratio of the two rates is the figure to look at, since seconds depend on the machine.
All state is in a temporary folder. Exits 1 on any failure.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks import product

if TYPE_CHECKING:
    from apps.ingest.models import IngestRun, Root
    from apps.ingest.runs.job import Job

STAGES = ("discovery", "chunking", "embedding", "rows", "store", "words")


def folder_to_ingest(data: str) -> Path:
    """The folder asked for, else a copy of the installed Django: where that stands, in a virtual
    environment that git ignores, it is no source."""
    if len(sys.argv) > 1:
        return Path(sys.argv[1]).resolve()
    spec = find_spec("django")
    assert spec is not None and spec.origin is not None
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(Path(spec.origin).parent, f"{data}/django", ignore=ignored))


def ingest(folder: Path) -> tuple["IngestRun", "Job", float]:
    """Ingest for real; the run, its job with the seconds of each stage, and all seconds."""
    from apps.ingest import services
    from apps.ingest.embedding import DEFAULT_MODEL, get_embedder
    from apps.ingest.runs import queue
    from apps.ingest.vectors.store import get_store

    # What a server has loaded long before.
    get_embedder(DEFAULT_MODEL).embed_query("warm")
    get_store()
    run = services.start_run(path=str(folder), name="benchmark", model=DEFAULT_MODEL)
    start = time.perf_counter()
    (job,) = queue.drain()
    seconds = time.perf_counter() - start
    run.refresh_from_db()
    if run.state != "completed":
        raise SystemExit(f"The ingest ended as {run.state}: {run.last_error}")
    return run, job, seconds


def store_alone(root: "Root", model: str) -> float:
    """Seconds that the store takes for the same rows in the same portions, with no work beside."""
    import numpy as np

    from apps.ingest.courtesy import SHORT_SECONDS
    from apps.ingest.runs.batches import ROWS_PER_WRITE
    from apps.ingest.types import VectorRecord
    from apps.ingest.vectors.store import get_store

    store = get_store()
    found = store.query(root.id, np.ones(256, dtype=np.float32), store.count(root.id))
    records = [VectorRecord(match.id, match.text, match.metadata) for match in found]
    vectors = np.random.default_rng(0).normal(size=(len(records), 256)).astype(np.float32)
    other = uuid4()
    # For as long after a question writes are in short slices, as they were not in the ingest.
    time.sleep(SHORT_SECONDS)
    start = time.perf_counter()
    for at in range(0, len(records), ROWS_PER_WRITE):
        part = slice(at, at + ROWS_PER_WRITE)
        store.add(other, model, records[part], vectors[part])
    seconds = time.perf_counter() - start
    if store.count(other) != store.count(root.id):
        raise SystemExit("The store lost rows.")
    return seconds


def table(run: "IngestRun", job: "Job", seconds: float, alone: float) -> list[tuple[str, str]]:
    rate, own = run.chunks / seconds, run.chunks / alone
    shares = [
        (f"  {stage}", f"{job.seconds[stage]:.2f} s  {job.seconds[stage] / seconds:6.1%}")
        for stage in STAGES
    ]
    return [
        ("folder", run.path),
        ("files", f"{run.files:,} (skipped {run.skipped:,})"),
        ("chunks", f"{run.chunks:,}"),
        ("seconds until searchable", f"{seconds:.2f}"),
        ("files/s", f"{run.files / seconds:,.0f}"),
        ("chunks/s", f"{rate:,.0f}"),
        ("busy (stages overlap)", ""),
        *shares,
        ("outside the embedder", f"{1 - job.seconds['embedding'] / seconds:.1%}"),
        ("the store alone, chunks/s", f"{own:,.0f}"),
        ("ratio to the store alone", f"{rate / own:.1%}"),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as data:
        folder = folder_to_ingest(data)
        if not folder.is_dir():
            raise SystemExit(f"{folder} is not a folder.")
        product.set_up(Path(data), [folder])
        from apps.ingest import queries
        from apps.ingest.vectors.store import reset_store

        run, job, seconds = ingest(folder)
        alone = store_alone(queries.find_root(run.path), run.model)
        reset_store()
    for label, value in table(run, job, seconds, alone):
        print(f"{label:26} {value}")


if __name__ == "__main__":
    main()
