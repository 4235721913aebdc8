"""How long after a change of a file its repository answers with it, and what following costs.

    python -m benchmarks.current               trees of 1,000 and 10,000 files
    python -m benchmarks.current 70000         a tree of so many files, each of one function

Prints one table: seconds from the last write to the first answer that has it, by the kernel's
word (`auto`) and by looking (`poll`); searches with and without; the processor's share and the
memory of a server that follows 30 idle repositories, which nobody asks. Then EDITS random edits,
moves, deletions and checkouts while four clients search: how many answers had a line that no
version of a file had, and how many had one that was gone for longer than STALE_SECONDS without
saying so. All state is in a temporary folder.
"""

import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks import product

SIZES, CHANGES, IDLE_REPOSITORIES, IDLE_SECONDS, EDITS = (1_000, 10_000), 30, 30, 30.0, 10_000
# Files of one checkout; it is one of a hundred edits.
CHECKED_OUT = 100
STALE_SECONDS = 2.0
# After a question, folders are looked at more often for a minute.
UNASKED_SECONDS = 65.0
WORDS = (
    "alpha", "beta", "gamma", "delta", "queue", "worker", "index", "search", "token", "model",
    "chunk", "parse", "merge",
)  # fmt: skip
PATIENCE = 60.0


def tree(folder: Path, files: int) -> list[Path]:
    """Write a tree of Python files of one function each, 30 in a folder."""
    chance, paths = random.Random(1), []
    for number in range(files):
        path = folder / f"pkg{number // 600}/mod{number // 30 % 20}/file_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        one, two = chance.sample(WORDS, 2)
        path.write_text(f"def {one}_{two}_{number}(value):\n    return value + {number}\n")
        paths.append(path)
    return paths


def places(client: httpx.Client, text: str) -> list[str]:
    body = {"pattern": text, "fixed": True, "mode": "files"}
    found = product.answer(client.post("/tools/grep", json=body))["results"]
    return [row["relPath"] for row in found]


@contextmanager
def followed(folders: Sequence[Path], base: Path, mode: str) -> Iterator[httpx.Client]:
    """A server that has ingested some folders, and knows that nothing has changed since."""
    data = base / f"data-{mode}-{len(folders)}"
    with product.serving(data, [base], CODEINFO_WATCH=mode) as client:
        for folder in folders:
            product.ingest_over_http(client, folder, folder.name)
        while mode != "off" and _is_behind(client):
            time.sleep(0.5)
        yield client
    shutil.rmtree(data)


def _is_behind(client: httpx.Client) -> bool:
    body = {"pattern": "nowhere_at_all", "fixed": True}
    return "stale" in product.answer(client.post("/tools/grep", json=body))


def delays(client: httpx.Client, files: Sequence[Path]) -> list[float]:
    """Seconds from each of some edits until a search finds it."""
    found = []
    for number, file in enumerate(random.Random(2).sample(files, CHANGES)):
        word = f"zebra_{number}_{time.time_ns()}"
        file.write_text(f"{file.read_text()}\ndef {word}(): ...\n")
        start = time.perf_counter()
        while not places(client, word):
            if time.perf_counter() - start > PATIENCE:
                raise RuntimeError(f"{file} was not found")
            time.sleep(0.01)
        found.append(time.perf_counter() - start)
    return found


def searches(client: httpx.Client) -> list[float]:
    """Milliseconds of searches of a warm server."""
    took = []
    for number in range(200):
        query = " ".join(random.Random(number).sample(WORDS, 3))
        start = time.perf_counter()
        product.answer(client.post("/tools/vector-search", json={"query": query}))
        took.append((time.perf_counter() - start) * 1_000)
    return took[20:]


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """p50 and p95."""
    cuts = statistics.quantiles(values, n=20)
    return cuts[9], cuts[18]


def metric(client: httpx.Client, name: str) -> float:
    text = client.get("/metrics").text
    return float(next(one for one in text.splitlines() if one.startswith(name)).split()[1])


def processor_share(client: httpx.Client) -> float:
    """Percent of a core that an idle server uses."""
    before = metric(client, "process_cpu_seconds_total")
    time.sleep(IDLE_SECONDS)
    return 100 * (metric(client, "process_cpu_seconds_total") - before) / IDLE_SECONDS


class Edits:
    """Random edits of a tree, each of which writes a new line that is known.

    lines: all that a file ever had
    gone: line → when it was taken away (`time.monotonic`)
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self.lines = {line for file in files for line in file.read_text().splitlines()}
        self.gone: dict[str, float] = {}
        self._chance = random.Random(3)

    def edit(self) -> None:
        kinds, weights = ("edit", "move", "delete", "checkout"), (33, 33, 33, 1)
        (kind,) = self._chance.choices(kinds, weights)
        some = self._chance.sample(self.files, CHECKED_OUT if kind == "checkout" else 1)
        for file in some:
            if kind == "move" and file.exists():
                target = file.with_name(f"moved_{time.time_ns()}.py")
                file.rename(target)
                self.files[self.files.index(file)] = target
            elif kind == "delete" and file.exists():
                self._note_gone(file)
                file.unlink()
            else:
                self._write(file)

    def _write(self, file: Path) -> None:
        line = f"def edited_{time.time_ns()}(): ..."
        self.lines.add(line)
        self._note_gone(file)
        file.write_text(f"{line}\n")

    def _note_gone(self, file: Path) -> None:
        if file.exists():
            now = time.monotonic()
            self.gone |= dict.fromkeys(file.read_text().splitlines(), now)


@dataclass
class Faults:
    """Answers with lines that no file ever had, and with gone ones that they do not mark."""

    answers: int = 0
    untrue: int = 0
    unmarked: int = 0

    def look(self, edits: Edits, answer: dict[str, Any], began: float) -> None:
        """began: when the question was sent"""
        lines = [row["chunk"] for row in answer["results"]]
        marked = {"stale", "changedFiles", "gone"} & answer.keys()
        self.answers += 1
        self.untrue += any(line not in edits.lines for line in lines)
        until = began - STALE_SECONDS
        self.unmarked += not marked and any(edits.gone.get(one, began) < until for one in lines)


def ask_until(address: str, edits: Edits, ending: threading.Event, faults: Faults) -> None:
    with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as client:
        while not ending.is_set():
            body, began = {"pattern": "edited_", "fixed": True, "limit": 200}, time.monotonic()
            faults.look(edits, product.answer(client.post("/tools/grep", json=body)), began)


def edit_beside_searches(client: httpx.Client, files: Sequence[Path]) -> tuple[list[Faults], bool]:
    """Return what each of four clients saw, and whether the end is as on disk."""
    edits, ending, faults = Edits(files), threading.Event(), [Faults() for _ in range(4)]
    asking = [
        threading.Thread(target=ask_until, args=(str(client.base_url), edits, ending, one))
        for one in faults
    ]
    for thread in asking:
        thread.start()
    for _ in range(EDITS):
        edits.edit()
        time.sleep(0.02)
    ending.set()
    for thread in asking:
        thread.join()
    end = time.monotonic() + PATIENCE
    on_disk = {str(file) for file in edits.files if file.exists() and "edited_" in file.read_text()}
    while time.monotonic() < end:
        if found_files(client) == on_disk:
            return faults, True
        time.sleep(0.2)
    return faults, False


def found_files(client: httpx.Client) -> set[str]:
    """Absolute paths of all files that a search finds an edit in."""
    found: set[str] = set()
    body: dict[str, Any] = {"pattern": "edited_", "fixed": True, "mode": "files", "limit": 500}
    while True:
        answer = product.answer(client.post("/tools/grep", json=body))
        found |= {row["hostPath"] for row in answer["results"]}
        if not (cursor := answer.get("nextCursor")):
            return found
        body["cursor"] = cursor


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or SIZES
    print("files | mode | saved → found p50, p95 s | search p50, p95 ms")
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as kept:
        base = Path(kept)
        for size in sizes:
            files = tree(base / f"tree-{size}", size)
            for mode in ("off", "auto", "poll"):
                with followed([base / f"tree-{size}"], base, mode) as client:
                    search = "{:.1f}, {:.1f}".format(*percentiles(searches(client)))
                    found = [] if mode == "off" else delays(client, files)
                    shown = "{:.2f}, {:.2f}".format(*percentiles(found)) if found else "—"
                    print(f"{size:,} | {mode} | {shown} | {search}", flush=True)
        small = [base / f"small-{number}" for number in range(IDLE_REPOSITORIES)]
        for folder in small:
            tree(folder, 200)
        for mode in ("off", "auto", "poll"):
            with followed(small, base, mode) as client:
                time.sleep(UNASKED_SECONDS)
                share = processor_share(client)
                memory = metric(client, "process_resident_memory_bytes") / 1e6
                row = f"{len(small)} idle repositories | {mode} | {share:.2f} % of a core"
                print(f"{row} | {memory:.0f} MB", flush=True)
        files = tree(base / "edited", 1_000)
        with followed([base / "edited"], base, "auto") as client:
            faults, is_equal = edit_beside_searches(client, files)
            answers = sum(one.answers for one in faults)
            print(f"{EDITS:,} edits beside {answers:,} answers:", end=" ")
            print(f"{sum(one.untrue for one in faults)} with an untrue line,", end=" ")
            print(f"{sum(one.unmarked for one in faults)} stale and not marked;", end=" ")
            print("in the end", "as on disk" if is_equal else "NOT as on disk")


if __name__ == "__main__":
    main()
