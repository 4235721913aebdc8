"""The latency of a search through HTTP, compared with Chroma alone in the same run.

    python -m benchmarks.search                 ingests this checkout and Django, serves, measures
    python -m benchmarks.search FOLDER…         the same with other folders
    python -m benchmarks.search --url URL       measures a server that runs already

Prints one table, in milliseconds. Without --url all state is in a temporary folder, the server is
another process, and Chroma, which has followed, is asked with the same vectors. Exits 1 on any
failure.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import django
import httpx

from benchmarks import ingest as own_ingest
from benchmarks import product

if TYPE_CHECKING:
    from apps.index.models import Root

LIMIT = 10
WARM_UP = 10

# Asked of any repository: sentences, key words, names.
QUESTIONS = (
    "where is the default timeout applied",
    "parse a configuration file",
    "retry with exponential backoff",
    "open a database connection",
    "how are errors turned into HTTP responses",
    "read an environment variable with a default",
    "escape HTML in a template",
    "class TestCase",
    "validate user input",
    "write bytes to a file atomically",
    "compute a hash of a file",
    "start a background thread",
    "cancel a running task",
    "log a request with its duration",
    "sort results by distance",
    "cache with a time to live",
    "date and time formatting",
    "check a password",
    "send an email",
    "split text into chunks of lines",
    "websocket consumer",
    "migration adds a column",
    "render a form field",
    "import settings module",
    "def __init__",
    "unicode normalisation",
    "pagination of a list",
    "command line arguments",
    "middleware order",
    "convert camel case to words",
)

Call = Callable[[str], object]
Row = tuple[str, list[float]]


def main() -> int:
    options = arguments()
    try:
        rows = measure_running(options) if options.url else measure_own(options)
    except (httpx.HTTPError, OSError, RuntimeError) as error:
        print(f"search benchmark failed: {error}", file=sys.stderr)
        return 1
    print_table(rows)
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="what to ingest")
    parser.add_argument("--url", help="a server that runs already")
    parser.add_argument("--rounds", type=int, default=10, help="times each question is asked")
    return parser.parse_args()


# --- measuring ------------------------------------------------------------------------------------


def timed(call: Call, rounds: int) -> list[float]:
    """Milliseconds of each call, after a few that do not count."""
    for question in QUESTIONS[:WARM_UP]:
        call(question)
    durations = []
    for question in QUESTIONS * rounds:
        started = time.perf_counter()
        call(question)
        durations.append((time.perf_counter() - started) * 1000)
    return durations


def http_rows(client: httpx.Client, rounds: int) -> list[Row]:
    """The search of one repository (the largest) and of all, through the API."""
    chunks = product.ingested(client)
    if not chunks:
        raise RuntimeError("no repository is ingested")
    largest = max(chunks, key=lambda name: chunks[name])
    total = sum(chunks.values())

    def search(question: str, **scope: str) -> None:
        body = {"query": question, "limit": LIMIT, **scope}
        found = product.answer(client.post("/tools/vector-search", json=body))
        if not found["results"]:
            raise RuntimeError(f"nothing found for {question!r}")

    one = f"HTTP, one repository ({chunks[largest]:,} chunks)"
    every = f"HTTP, all {len(chunks)} repositories ({total:,} chunks)"
    return [
        (one, timed(lambda q: search(q, repository=largest), rounds)),
        (every, timed(search, rounds)),
    ]


def measure_running(options: argparse.Namespace) -> list[Row]:
    with httpx.Client(base_url=options.url.rstrip("/"), timeout=30, trust_env=False) as client:
        return http_rows(client, options.rounds)


def measure_own(options: argparse.Namespace) -> list[Row]:
    """First a server of our own, which owns the data folder while it runs; then this process."""
    with tempfile.TemporaryDirectory(prefix="codeinfo-benchmark-") as temporary:
        base = Path(temporary).resolve()
        folders = [folder.resolve() for folder in options.folders]
        folders = folders or [product.HERE, copy_of_django(base)]
        with product.serving(base / "data", folders) as client:
            for folder in folders:
                ingest(client, folder)
            rows = http_rows(client, options.rounds)
        product.set_up(base / "data", folders, CODEINFO_CHROMA="follow")
        return rows + own_rows(options.rounds)


def copy_of_django(base: Path) -> Path:
    """Django's own source, out of the way of the git work tree that it may be installed in."""
    installed = Path(django.__file__).parent
    return shutil.copytree(installed, base / "django", ignore=shutil.ignore_patterns("*.pyc"))


def ingest(client: httpx.Client, folder: Path) -> None:
    started = time.perf_counter()
    status = product.ingest_over_http(client, folder, folder.name)
    seconds, chunks = time.perf_counter() - started, status["counts"]["embedded"]
    print(f"ingested {folder.name}: {chunks:,} chunks in {seconds:.1f} s", file=sys.stderr)


def own_rows(rounds: int) -> list[Row]:
    """The same questions without HTTP, and Chroma alone, for vectors made beforehand."""
    from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder  # noqa: PLC0415
    from apps.index import queries  # noqa: PLC0415 - after Django's set-up
    from apps.index.vectors.store import nearest, reset_client  # noqa: PLC0415
    from apps.retrieval.query import SearchQuery  # noqa: PLC0415
    from apps.retrieval.search import search  # noqa: PLC0415

    roots = queries.published_roots()
    largest = max(roots, key=lambda root: root.embedded)
    own_ingest.follow()
    vectors = {
        question: get_embedder(DEFAULT_MODEL).embed_query(question) for question in QUESTIONS
    }

    def alone(*searched: "Root") -> Call:
        return lambda q: [nearest(root.store, vectors[q], 2 * LIMIT) for root in searched]

    rows = [
        (
            "search(), one repository",
            timed(lambda q: search(SearchQuery(q, (largest.name,), LIMIT)), rounds),
        ),
        ("search(), all", timed(lambda q: search(SearchQuery(q, (), LIMIT)), rounds)),
        ("Chroma alone, one repository", timed(alone(largest), rounds)),
        ("Chroma alone, all", timed(alone(*roots), rounds)),
    ]
    reset_client()
    return rows


# --- the table ------------------------------------------------------------------------------------


def print_table(rows: Sequence[Row]) -> None:
    """p50 and p95 of each row, and how many times that of Chroma p50 is."""
    bases = {
        scope: median(durations)
        for name, durations in rows
        for scope in [scope_of(name)]
        if "Chroma" in name
    }
    print(f"{'':<46}{'p50 ms':>9}{'p95 ms':>9}{'× Chroma':>9}")
    for name, durations in rows:
        ordered = sorted(durations)
        p50, p95 = median(ordered), ordered[int(len(ordered) * 0.95)]
        base = bases.get(scope_of(name))
        times = f"{p50 / base:.1f}" if base else "-"
        print(f"{name:<46}{p50:>9.2f}{p95:>9.2f}{times:>9}")


def scope_of(name: str) -> str:
    return "all" if ", all" in name else "one"


if __name__ == "__main__":
    sys.exit(main())
