"""The speed of an ingest, and the share of each step.

    python -m benchmarks.ingest            ingests the installed Django
    python -m benchmarks.ingest FOLDER     ingests a copy of that folder

Prints one table. Chroma follows after the run, as a thread of a server does. The folder is then
ingested again, unchanged, and with another line in every hundredth file, which Chroma follows, too.
All state is in a temporary folder. Exits 1 on any failure.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import product

if TYPE_CHECKING:
    from apps.index.models import IngestRun

STAGES = ("discovery", "chunking", "embedding", "rows", "texts", "parts")


def folder_to_ingest(data: str) -> Path:
    """A copy of the folder of the arguments, or of the installed Django."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else _django()
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not a folder.")
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(folder, f"{data}/{folder.name}", ignore=ignored, symlinks=True))


def _django() -> Path:
    spec = find_spec("django")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def ingest(folder: Path) -> tuple["IngestRun", dict[str, float], float]:
    """Ingest for real; the run, the seconds of each stage, and all seconds."""
    from apps.core.monitoring import telemetry
    from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
    from apps.ingest import services
    from apps.ingest.runs import queue

    # What a server has loaded long before.
    get_embedder(DEFAULT_MODEL).embed_query("warm")
    run = services.start_run(path=str(folder), name="benchmark", model=DEFAULT_MODEL)
    steps: dict[str, float] = defaultdict(float)

    def add(step: str, took: float) -> None:
        steps[step.removeprefix("ingest ")] += took

    telemetry.also = add
    start = time.perf_counter()
    queue.drain()
    seconds = time.perf_counter() - start
    run.refresh_from_db()
    if run.state not in ("completed", "skipped"):
        raise SystemExit(f"The ingest ended as {run.state}: {run.last_error}")
    return run, steps, seconds


def follow() -> float:
    """Have Chroma follow what is published; the seconds until it is complete."""
    from apps.index.vectors.follower import follow as follow_once
    from apps.index.vectors.following import following

    start = time.perf_counter()
    follow_once()
    seconds = time.perf_counter() - start
    if following().state != "complete":
        raise SystemExit(f"Chroma is not complete: {following()}")
    return seconds


def change(folder: Path) -> int:
    """Add a line to every hundredth of the files that are ingested; how many these are."""
    from apps.index import queries

    files = queries.live_files(queries.find_root(str(folder))).ingested()
    some = [file.path for file in files][::100]
    for path in some:
        with (folder / path).open("a") as file:
            file.write("\n")
    return len(some)


def table(run: "IngestRun", steps: dict[str, float], seconds: float) -> list[tuple[str, str]]:
    shares = [
        (f"  {stage}", f"{steps[stage]:.2f} s  {steps[stage] / seconds:6.1%}") for stage in STAGES
    ]
    return [
        ("folder", run.path),
        ("files", f"{run.files:,} (skipped {run.skipped:,})"),
        ("chunks", f"{run.chunks:,}"),
        ("seconds until searchable", f"{seconds:.2f}"),
        ("files/s", f"{run.files / seconds:,.0f}"),
        ("chunks/s", f"{run.chunks / seconds:,.0f}"),
        ("busy (stages overlap)", ""),
        *shares,
        ("outside the embedder", f"{1 - steps['embedding'] / seconds:.1%}"),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as data:
        folder = folder_to_ingest(data)
        product.set_up(Path(data) / "data", [folder], CODEINFO_CHROMA="follow")
        from apps.index.vectors.store import reset_client
        from apps.ingest.discovery.discovery import SETTLE_NS

        time.sleep(SETTLE_NS / 1e9)
        run, steps, seconds = ingest(folder)
        followed = follow()
        _, _, unchanged = ingest(folder)
        count = change(folder)
        _, _, changed = ingest(folder)
        followed_changes = follow()
        reset_client()
    rate = run.chunks / followed
    rows = [
        *table(run, steps, seconds),
        ("then, until Chroma is complete", f"{followed:.2f} s  {rate:,.0f} chunks/s"),
        ("again, nothing changed", f"{unchanged:.2f} s  {unchanged / seconds:.1%}"),
        (f"again, {count} files changed", f"{changed:.2f} s  {changed / seconds:.1%}"),
        ("then, until Chroma is complete", f"{followed_changes:.2f} s"),
    ]
    for label, value in rows:
        print(f"{label:31} {value}")


if __name__ == "__main__":
    main()
