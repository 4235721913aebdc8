"""Memory and time for very many files, and the time until an ingest of them is cancelled.

    python -m benchmarks.many FOLDER…                 100,000 files
    python -m benchmarks.many --files 5000 FOLDER…    5,000 files

The files are copies of small source files in the folders, each with one distinct line. A server in
another process ingests them. The ingest is cancelled during discovery, half-way, and after
publishing. Prints one table: seconds, and the megabytes of the server and its children together, as
private memory (RssAnon) and as resident memory (VmRSS, which counts shared pages for each process).
All state is in a temporary folder. Linux only. Exits 1 on any failure.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

import httpx

from benchmarks import product

CODE = (".c", ".cpp", ".cs", ".go", ".java", ".js", ".kt", ".py", ".rs", ".scala", ".swift", ".ts")
SMALL = range(300, 4_001)  # bytes
PER_FOLDER = 500
SAMPLE_SECONDS = 0.5
SEARCHES = 20
FIELDS = ("RssAnon", "VmRSS")

Status = dict[str, Any]
Row = tuple[str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="where small source files are")
    parser.add_argument("--files", type=int, default=100_000, help="how many to ingest")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        base = Path(temporary).resolve()
        folder = make(base / "many", options.folders, options.files)
        try:
            with product.serving(base / "data", [folder]) as client:
                for label, value in measured(client, folder, options.files):
                    print(f"{label:40} {value}", flush=True)
        except (httpx.HTTPError, RuntimeError) as error:
            print(f"benchmark of many files failed: {error}", file=sys.stderr)
            return 1
    return 0


# --- the files ------------------------------------------------------------------------------------


def make(folder: Path, sources: Sequence[Path], files: int) -> Path:
    """So many files in `folder`, none the same as another."""
    found = sorted(path for source in sources for path in small_files(source))
    for number, path in enumerate(islice(cycle(found), files)):
        place = folder / f"part{number // PER_FOLDER}"
        place.mkdir(parents=True, exist_ok=True)
        copy = place / f"{path.stem}_{number}{path.suffix}"
        copy.write_bytes(path.read_bytes() + b"\n// number %d\n" % number)
    return folder


def small_files(source: Path) -> Iterator[Path]:
    for path in source.rglob("*"):
        if path.suffix in CODE and path.is_file() and path.stat().st_size in SMALL:
            yield path


# --- the measure ----------------------------------------------------------------------------------


def measured(client: httpx.Client, folder: Path, files: int) -> Iterator[Row]:
    """The rows of the table, as they come."""
    run = Run.begun(client, folder)
    run.until(lambda status: status["state"] == "scanning")
    time.sleep(files / 100_000)
    yield "cancelled while it looks for files, s", run.cancelled()
    run = Run.begun(client, folder)
    run.until(lambda status: (status.get("fileIndex") or 0) > files / 2)
    yield "cancelled half-way, s", run.cancelled()
    with most_memory() as most:
        run, started = Run.begun(client, folder), time.perf_counter()
        run.until(lambda status: bool(product.ingested(client)))
        yield "until searchable, s", f"{time.perf_counter() - started:.1f}"
        yield "cancelled after publishing, s", run.cancelled()
    yield "chunks", f"{sum(product.ingested(client).values()):,}"
    yield "memory at most, MB", memory_text(most)
    time.sleep(2)  # by then none of its files is young any more
    run, started = Run.begun(client, folder), time.perf_counter()
    run.until(lambda status: False)
    yield "again, nothing changed, s", f"{time.perf_counter() - started:.1f}"
    with most_memory() as most:
        for _ in range(SEARCHES):
            product.answer(client.post("/tools/vector-search", json={"query": "read a file"}))
            time.sleep(SAMPLE_SECONDS)
    yield "memory while it is searched, MB", memory_text(most)


@dataclass(frozen=True)
class Run:
    """A run of the server."""

    client: httpx.Client
    id: str

    @classmethod
    def begun(cls, client: httpx.Client, folder: Path) -> Self:
        models = product.answer(client.get("/ingest/models"))
        model = models["lockedModelId"] or models["models"][0]["id"]
        body = {"path": str(folder), "name": "many", "model": model}
        return cls(client, product.answer(client.post("/ingest/start", json=body))["runId"])

    def until(self, reached: Callable[[Status], bool]) -> None:
        """Wait until its status is so, or it has ended. Raises RuntimeError where it failed."""
        from apps.index.types import TERMINAL_STATES  # noqa: PLC0415 - after the settings

        while True:
            status = product.answer(self.client.get(f"/ingest/status/{self.id}"))
            if status["state"] == "error":
                raise RuntimeError(f"{status}")
            if status["state"] in TERMINAL_STATES or reached(status):
                return
            time.sleep(product.LOOK_SECONDS)

    def cancelled(self) -> str:
        """Cancel it: how many seconds it takes to end."""
        started = time.perf_counter()
        answered = product.answer(self.client.post(f"/ingest/cancel/{self.id}"))
        self.until(lambda status: False)
        return f"{time.perf_counter() - started:.2f} (cleanup {answered['cleanup']})"


@contextmanager
def most_memory() -> Iterator[dict[str, int]]:
    """The most megabytes that the server and its children have together while the block runs."""
    most = dict.fromkeys(FIELDS, 0)
    over = threading.Event()

    def look() -> None:
        while not over.wait(SAMPLE_SECONDS):
            found = [memory_of(process) for process in below(os.getpid())]
            for field in FIELDS:
                most[field] = max(most[field], sum(each.get(field, 0) for each in found) >> 10)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()


def below(process: int) -> set[int]:
    """The processes that a process has begun, and those that they have."""
    parents = {int(path.name): parent_of(path) for path in Path("/proc").glob("[0-9]*")}
    found: set[int] = set()
    while more := {each for each, by in parents.items() if by in {process, *found}} - found:
        found |= more
    return found


def parent_of(process: Path) -> int:
    try:
        # After the name, which may hold anything: the state and the parent.
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # ended meanwhile


def memory_of(process: int) -> dict[str, int]:
    """Kilobytes by field."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines)
    return {name: int(value.split()[0]) for name, value in pairs if name in FIELDS}


def memory_text(most: dict[str, int]) -> str:
    return "  ".join(f"{field} {most[field]:,}" for field in FIELDS)


if __name__ == "__main__":
    sys.exit(main())
