"""How long after a change of a file its repository answers with it, and what following costs.

    python -m benchmarks.current               trees of 1,000 and 10,000 files
    python -m benchmarks.current 70000         a tree of so many files, each of one function

Prints one table: seconds from the last write to the first answer that has it, by the kernel's
word (`auto`) and by looking (`poll`); searches with and without; the processor's share of a server
that follows 30 idle repositories. Then EDITS random edits, moves and deletions while four clients
search, and how many answers had a line that no version of a file had. All state is in a temporary
folder.
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
from pathlib import Path

import httpx

from benchmarks import product

SIZES, CHANGES, IDLE_REPOSITORIES, IDLE_SECONDS, EDITS = (1_000, 10_000), 30, 30, 30.0, 400
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


def processor_share(client: httpx.Client) -> float:
    """Percent of a core that an idle server uses."""

    def used() -> float:
        text = client.get("/metrics").text
        line = next(one for one in text.splitlines() if one.startswith("process_cpu_seconds_total"))
        return float(line.split()[1])

    before = used()
    time.sleep(IDLE_SECONDS)
    return 100 * (used() - before) / IDLE_SECONDS


class Edits:
    """Random edits of a tree, each of which writes a new line that is known."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self.lines = {line for file in files for line in file.read_text().splitlines()}
        self._chance = random.Random(3)

    def edit(self) -> None:
        file, kind = (
            self._chance.choice(self.files),
            self._chance.choice(["edit", "move", "delete"]),
        )
        line = f"def edited_{time.time_ns()}(): ..."
        self.lines.add(line)
        if kind == "move" and file.exists():
            target = file.with_name(f"moved_{time.time_ns()}.py")
            file.rename(target)
            self.files.append(target)
        elif kind == "delete" and file.exists():
            file.unlink()
        else:
            file.write_text(f"{line}\n")


def untrue_lines(address: str, edits: Edits, ending: threading.Event, found: list[str]) -> None:
    """Search until the end, and note lines that no version of a file had."""
    with httpx.Client(base_url=address, timeout=PATIENCE, trust_env=False) as client:
        while not ending.is_set():
            body = {"pattern": "edited_", "fixed": True, "limit": 200}
            rows = product.answer(client.post("/tools/grep", json=body))["results"]
            found += [row["chunk"] for row in rows if row["chunk"] not in edits.lines]


def edit_beside_searches(client: httpx.Client, files: Sequence[Path]) -> tuple[int, bool]:
    """Return how many untrue lines were found, and whether the end is as on disk."""
    edits, ending, untrue = Edits(files), threading.Event(), list[str]()
    address = str(client.base_url)
    searching = [
        threading.Thread(target=untrue_lines, args=(address, edits, ending, untrue))
        for _ in range(4)
    ]
    for thread in searching:
        thread.start()
    for _ in range(EDITS):
        edits.edit()
        time.sleep(0.02)
    ending.set()
    for thread in searching:
        thread.join()
    end = time.monotonic() + PATIENCE
    on_disk = {str(file) for file in edits.files if file.exists() and "edited_" in file.read_text()}
    while time.monotonic() < end:
        body = {"pattern": "edited_", "fixed": True, "mode": "files", "limit": 500}
        rows = product.answer(client.post("/tools/grep", json=body))["results"]
        if {row["hostPath"] for row in rows} == on_disk:
            return len(untrue), True
        time.sleep(0.2)
    return len(untrue), False


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
                time.sleep(5)
                share = processor_share(client)
                print(
                    f"{len(small)} idle repositories | {mode} | {share:.2f} % of a core", flush=True
                )
        files = tree(base / "edited", 1_000)
        with followed([base / "edited"], base, "auto") as client:
            untrue, is_equal = edit_beside_searches(client, files)
            print(f"{EDITS} edits beside four clients: {untrue} untrue lines; in the end", end=" ")
            print("as on disk" if is_equal else "NOT as on disk")


if __name__ == "__main__":
    main()
