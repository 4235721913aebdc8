"""Operations on a large index: a second folder beside the one that is ingested.

The folder is a part of the tree, each file with a line more, so that nothing of it is stored yet.
A search goes on at a steady rate while it is ingested. Times are those of a client of the API.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx

from benchmarks import product
from benchmarks.search import QUESTIONS

PART_FILES, CHANGED_FILES = 10_000, 150
RATE = 5  # searches a second
IDLE_SECONDS = 30
# Chunks with a vector at which a run is cancelled or its server killed.
SOME_CHUNKS = 5_000
POLL_SECONDS = 0.02
LIVE = ("queued", "scanning", "embedding")

Row = tuple[str, str]
JSON = dict[str, Any]


def part_of(tree: Path, target: Path, files: int) -> int:
    """Copy some files of a tree, each with a line more. Return how many."""
    found = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    for path in found[:files]:
        copy = target / path.relative_to(tree)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes() + b"\n# copied for a benchmark\n")
    return len(found[:files])


def change(folder: Path, files: int) -> None:
    """Add a line to some files, spread over a folder."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in found[:: max(1, len(found) // files)][:files]:
        path.write_bytes(path.read_bytes() + b"# changed\n")


def timed(call: Callable[[], httpx.Response]) -> tuple[float, JSON]:
    """Seconds of a request, and its answer."""
    start = time.perf_counter()
    answer = product.answer(call())
    return time.perf_counter() - start, answer


def status(client: httpx.Client, run: str) -> JSON:
    return product.answer(client.get(f"/ingest/status/{run}"))


def until(client: httpx.Client, run: str, reached: Callable[[JSON], bool]) -> None:
    """Wait until a run is so far. Raises RuntimeError if it ends before."""
    while not reached(now := status(client, run)):
        if now["state"] not in LIVE:
            raise RuntimeError(f"the run has ended: {now}")
        time.sleep(POLL_SECONDS)


def steady(client: httpx.Client, goes_on: Callable[[float], bool]) -> list[float]:
    """Milliseconds of searches at RATE, while `goes_on` says so of the seconds."""
    start, taken = time.perf_counter(), []
    while goes_on(time.perf_counter() - start):
        time.sleep(max(0.0, start + len(taken) / RATE - time.perf_counter()))
        body = {"query": QUESTIONS[len(taken) % len(QUESTIONS)], "limit": 10}
        seconds, _ = timed(lambda body=body: client.post("/tools/vector-search", json=body))
        taken.append(seconds * 1000)
    return taken


def p95(milliseconds: Sequence[float]) -> float:
    return quantiles(milliseconds, n=20)[-1]


def searched_and_changed(client: httpx.Client, part: Path) -> list[Row]:
    """A search before and during the ingest of a folder, and the ingest of a few changes."""
    steady(client, lambda seconds: seconds < 5)  # warm
    idle = steady(client, lambda seconds: seconds < IDLE_SECONDS)
    start = time.perf_counter()
    run = product.start_over_http(client, part, "part")
    meanwhile = steady(client, lambda _: status(client, run)["state"] in LIVE)
    first, chunks = time.perf_counter() - start, status(client, run)["counts"]["chunks"]
    change(part, CHANGED_FILES)
    start = time.perf_counter()
    done = product.wait_over_http(client, product.start_over_http(client, part, "part"))
    again, share = time.perf_counter() - start, done["counts"]["chunks"] / max(chunks, 1)
    costs = f"{again:.1f} s ({again / first:.1%} of {first:.0f} s for {share:.1%} of its chunks)"
    times = f"{p95(idle):.0f} → {p95(meanwhile):.0f} ms ({p95(meanwhile) / p95(idle):.1f} ×)"
    return [("search p95, idle → ingest", times), ("point release", costs)]


def cancelled(client: httpx.Client, part: Path) -> list[Row]:
    """Cancels of a first ingest of a folder, at several stages."""
    moments: dict[str, Callable[[JSON], bool]] = {
        "discovery": lambda now: now["state"] == "scanning",
        "embedding": lambda now: now["counts"]["chunks"] > 0,
        "storing": lambda now: now["counts"]["embedded"] >= SOME_CHUNKS,
    }
    rows = []
    for name, reached in moments.items():
        run = product.start_over_http(client, part, "part")
        until(client, run, reached)
        seconds, _ = timed(lambda run=run: client.post(f"/ingest/cancel/{run}", json={}))
        start = time.perf_counter()
        product.wait_over_http(client, run, POLL_SECONDS)
        ended = time.perf_counter() - start
        rows.append((f"cancel while {name}", f"{seconds:.2f} s, ended {ended:.2f} s later"))
    return rows


def removed(client: httpx.Client, folder: Path, label: str) -> Row:
    seconds, _ = timed(lambda: client.post(f"/ingest/remove/{folder}", json={}))
    return f"remove {label}", f"{seconds:.2f} s"


def measure(data: Path, tree: Path, folder: Path, server_of: Callable[[Path], int]) -> list[Row]:
    """The table of operations for the index in `data`, which has `tree` and is removed at the end.

    folder: for the second folder
    server_of: returns the process id of the server of a data folder
    """
    part = folder / "part"
    shutil.rmtree(part, ignore_errors=True)
    part_of(tree, part, PART_FILES)
    bases = [tree.parent, folder]
    with product.serving(data, bases) as client:
        rows = searched_and_changed(client, part)
        rows.append(removed(client, part, "the second folder"))
        rows += cancelled(client, part)
        run = product.start_over_http(client, part, "part")
        until(client, run, lambda now: now["counts"]["embedded"] >= SOME_CHUNKS)
        os.kill(server_of(data), signal.SIGKILL)
    start = time.perf_counter()
    with product.serving(data, bases) as client:
        text = f"{time.perf_counter() - start:.1f} s"
        rows.append(("start after a kill during an ingest", text))
        rows.append(removed(client, tree, "the tree"))
        os.kill(server_of(data), signal.SIGKILL)
    start = time.perf_counter()
    with product.serving(data, bases) as client:
        text = f"{time.perf_counter() - start:.1f} s"
        rows.append(("start after a kill during a removal", text))
        start = time.perf_counter()
    return [*rows, ("stop", f"{time.perf_counter() - start:.1f} s")]
