"""Ingest and search of very large trees, beside ripgrep and plain Chroma in the same run.

    python -m benchmarks.large                       the sources of Linux and of LLVM, from Debian
    python -m benchmarks.large linux-source-6.1      one of them
    python -m benchmarks.large /path/to/tree         a folder, which is not changed

Prints one table a tree. Packages come through apt-get, which must be able to reach Debian's
packages; a source package needs the `deb` sources of the machine to have sources too. All state is
in a temporary folder (--folder), of about five times the size of the tree. A run takes from half
an hour to an hour and a half, and its seconds mean something on an idle machine only.
"""

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import httpx

from benchmarks import operations, product
from benchmarks.search import QUESTIONS

TREES = ("linux-source-6.1", "llvm-toolchain-14")
# The last lines of the .gitignore of linux-source hide all files but Debian's.
PACKAGING = ("/*\n", "!/debian/\n")
SAMPLE_SECONDS = 0.5
ROUNDS, CLIENTS, CHROMA_ROWS = 5, 32, 20_000
PARTS = ("chroma", "texts", "grams", "index", "codeinfo.sqlite3")
# Looked for by ripgrep: a rare name, a common one, an expression.
PATTERNS = ("tcp_reno_cong_avoid", "mutex_lock", r"static int \w+_probe\(")

Row = tuple[str, str]


# --- trees ----------------------------------------------------------------------------------------


def tree_of(name: str, folder: Path) -> Path:
    """The tree that an argument names, unpacked in `folder` if it is a package. Raises
    CalledProcessError."""
    if Path(name).is_dir():
        return Path(name).resolve()
    target = folder / name
    target.mkdir(parents=True)
    if name.startswith("linux-source"):
        run("apt-get", "download", name, cwd=target)
        (package,) = target.glob("*.deb")
        run("dpkg-deb", "-x", package.name, "package", cwd=target)
        (archive,) = (target / "package").rglob("linux-source-*.tar.xz")
    else:
        run("apt-get", *with_sources(target), "source", "--download-only", name, cwd=target)
        archive = max(target.glob("*.orig.tar.*"), key=lambda path: path.stat().st_size)
    tree = target / "tree"
    tree.mkdir()
    run("tar", "-xf", str(archive), "--strip-components=1", "-C", str(tree), cwd=target)
    ignored = tree / ".gitignore"
    if ignored.is_file():
        lines = ignored.read_text().splitlines(keepends=True)
        ignored.write_text("".join(line for line in lines if line not in PACKAGING))
    return tree


def with_sources(folder: Path) -> list[str]:
    """Options of apt-get that add the source packages of the machine's Debian sources."""
    lists = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    parts = folder / "apt"
    parts.mkdir()
    for number, path in enumerate(each for each in lists if each.is_file()):
        text = path.read_text().replace("Types: deb\n", "Types: deb deb-src\n")
        if "/debian" in text:
            (parts / f"{number}{path.suffix}").write_text(text)
    options = ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={parts}"]
    run("apt-get", *options, "update", cwd=folder)
    return options


def run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)


# --- measuring ------------------------------------------------------------------------------------


@dataclass
class Watched:
    """What is seen of a run from outside."""

    seconds: float = 0.0
    progress: list[tuple[float, int]] = field(default_factory=list)  # seconds, chunks written
    # The most of the server and its processes together.
    peak: "Memory" = field(default_factory=lambda: Memory(0, 0))

    def rate(self, start: float, end: float) -> float:
        """Chunks a second between two parts of all chunks, each from 0 to 1."""
        total = self.progress[-1][1]
        first = next(t for t, chunks in self.progress if chunks >= start * total)
        last = next(t for t, chunks in self.progress if chunks >= end * total)
        return (end - start) * total / max(last - first, 1e-9)


class Memory(NamedTuple):
    """Bytes of processes. Pages that they share count once."""

    own: int
    mapped: int  # pages of files, which the operating system drops when it needs them

    def __str__(self) -> str:
        return f"{self.own / 1e9:.2f} GB, and {self.mapped / 1e9:.2f} GB of mapped files"


def memory_of(pid: int) -> Memory:
    """The memory of a process and its children."""
    total, waiting = {"Pss_Anon:": 0, "Pss_File:": 0}, [pid]
    while waiting:
        each = waiting.pop()
        try:
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
            # A child belongs to the thread that has started it.
            for children in Path(f"/proc/{each}/task").glob("*/children"):
                waiting += map(int, children.read_text().split())
        except OSError:
            continue  # it has ended
        for kind in total:
            total[kind] += 1024 * int(rollup.split(kind)[1].split()[0])
    return Memory(*total.values())


@contextmanager
def sampled(client: httpx.Client, server: int, run_id: str) -> Iterator[Watched]:
    """Watch a run, and the memory of the server."""
    watched, done, start = Watched(), threading.Event(), time.perf_counter()

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            watched.peak = max(watched.peak, memory_of(server))
            status = product.answer(client.get(f"/ingest/status/{run_id}"))
            now = time.perf_counter() - start
            watched.progress.append((now, status["counts"]["embedded"]))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield watched
    finally:
        watched.seconds = time.perf_counter() - start
        done.set()
        thread.join()


def search(client: httpx.Client, question: str) -> float:
    """Milliseconds of a search."""
    start = time.perf_counter()
    product.answer(client.post("/tools/vector-search", json={"query": question, "limit": 10}))
    return (time.perf_counter() - start) * 1000


def searches(client: httpx.Client, rounds: int = ROUNDS) -> list[float]:
    return [search(client, question) for question in QUESTIONS * rounds]


def throughput(client: httpx.Client) -> float:
    """Searches a second of CLIENTS clients at once."""
    questions = list(QUESTIONS) * 10
    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda question: search(client, question), questions))
    return len(questions) / (time.perf_counter() - start)


def ripgrep(tree: Path) -> list[Row]:
    """Seconds of ripgrep, if it is installed; its second run has a warm cache."""
    if shutil.which("rg") is None:
        return [("ripgrep", "not installed")]
    rows = []
    for pattern in PATTERNS:
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            subprocess.run(["rg", "-n", pattern, str(tree)], stdout=subprocess.DEVNULL, check=False)
            seconds.append(time.perf_counter() - start)
        rows.append((f"ripgrep {pattern}", f"{seconds[0]:.2f} s, then {seconds[1]:.2f} s"))
    return rows


def plain_chroma(data: Path) -> Row:
    """Rows a second of Chroma alone, with its defaults and a text for each row."""
    program = f"""
import sys, time, chromadb, numpy as np
vectors = np.random.default_rng(1).standard_normal(({CHROMA_ROWS}, 256)).astype(np.float32)
rows = chromadb.PersistentClient(sys.argv[1]).create_collection("plain", embedding_function=None)
start = time.perf_counter()
for at in range(0, len(vectors), 500):
    ids = [str(i) for i in range(at, at + 500)]
    rows.add(ids=ids, embeddings=vectors[at:at + 500], documents=[i + " text" * 160 for i in ids])
print(len(vectors) / (time.perf_counter() - start))
"""
    command = [sys.executable, "-c", program, str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"Chroma alone, first {CHROMA_ROWS:,} rows", f"{float(done.stdout):,.0f} rows/s"


def bytes_of(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(each.lstat().st_size for each in files if not each.is_dir())


def source_bytes(data: Path) -> int:
    """Bytes of the files that are ingested."""
    with sqlite3.connect(data / "codeinfo.sqlite3") as database:
        query = "SELECT sum(size) FROM index_sourcefile WHERE skip_reason = ''"
        return int(database.execute(query).fetchone()[0])


def spread(milliseconds: Sequence[float]) -> str:
    cuts = quantiles(milliseconds, n=20)
    return f"{median(milliseconds):.0f} / {cuts[-1]:.0f} ms"


def measure(name: str, folder: Path) -> list[Row]:
    tree = tree_of(name, folder)
    data = folder / f"data-{tree.parent.name}"
    with product.serving(data, [tree.parent], CODEINFO_CHROMA="follow") as client:
        server = server_of(data)
        name = tree.parent.name or "tree"
        run_id = product.start_over_http(client, tree, name)
        with sampled(client, server, run_id) as ingest:
            status = product.wait_over_http(client, run_id, SAMPLE_SECONDS)
        if status["state"] != "completed":
            raise RuntimeError(f"{tree}: {status}")
        counts, start = status["counts"], time.perf_counter()
        first = search(client, QUESTIONS[0])
        cold = searches(client, 1)
        beside = searches(client)
        product.wait_for_chroma(client, SAMPLE_SECONDS)
        followed = time.perf_counter() - start
        idle = searches(client)
        many = throughput(client)
        start = time.perf_counter()
        product.wait_over_http(client, product.start_over_http(client, tree, name))
        unchanged = time.perf_counter() - start
        memory = memory_of(server)
    with product.serving(data, [tree.parent]) as client:
        again = search(client, QUESTIONS[1])
    size, whole = source_bytes(data), bytes_of(tree)
    parts = {part: bytes_of(data / part) for part in PARTS}
    index = sum(parts.values())
    rates = f"{ingest.rate(0, 0.1):,.0f} → {ingest.rate(0.9, 1):,.0f}"
    return [
        ("tree", str(tree)),
        ("files, chunks", f"{counts['files']:,}, {counts['chunks']:,}"),
        ("until searchable", f"{ingest.seconds / 60:.1f} min"),
        ("chunks/s, first and last tenth", rates),
        ("index", f"{index / 1e9:.2f} GB"),
        ("  times the tree", f"{index / whole:.2f} × of {whole / 1e9:.2f} GB"),
        ("  times the ingested files", f"{index / size:.2f} × of {size / 1e9:.2f} GB"),
        *((f"  {part}", f"{count / 1e9:.2f} GB") for part, count in parts.items()),
        ("memory, peak of the ingest", str(ingest.peak)),
        ("memory afterwards", str(memory)),
        ("then, until Chroma is complete", f"{followed / 60:.1f} min"),
        ("first search after the ingest", f"{first:.0f} ms"),
        ("each question for the first time", spread(cold)),
        ("search beside Chroma, p50 / p95", spread(beside)),
        ("search, p50 / p95", spread(idle)),
        ("first search after a restart", f"{again:.0f} ms"),
        (f"searches/s, {CLIENTS} clients", f"{many:.0f} ({many * median(idle) / 1000:.2f} × one)"),
        ("nothing changed", f"{unchanged:.1f} s"),
        plain_chroma(folder / "plain"),
        *ripgrep(tree),
        *operations.measure(data, tree, folder, server_of),
    ]


def server_of(data: Path) -> int:
    """The process id of the server with this data folder."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            started_with = path.read_bytes()
        except OSError:
            continue
        command = (path.parent / "cmdline").read_bytes()
        if f"CODEINFO_DATA_DIR={data}".encode() in started_with and b"serve" in command:
            return int(path.parent.name)
    raise RuntimeError("the server is not found")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trees", nargs="*", default=TREES, help="packages or folders")
    parser.add_argument("--folder", type=Path, help="where the state is, which is not removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="codeinfo-large-") as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for name in options.trees:
            try:
                rows = measure(name, folder)
            except (httpx.HTTPError, OSError, RuntimeError, subprocess.SubprocessError) as error:
                print(f"large benchmark failed: {error}", file=sys.stderr)
                return 1
            for label, value in rows:
                print(f"{label:34} {value}")
            print()
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
