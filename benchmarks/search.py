"""How long a search takes through HTTP, beside the bare store in the same run.

    python benchmarks/search.py                 ingests this checkout and Django, serves, measures
    python benchmarks/search.py FOLDER…         the same with other folders
    python benchmarks/search.py --url URL       measures a server that runs already

Prints one table, in milliseconds. Without --url all state is in a temporary folder, and the store
is asked for the same vectors and as many rows as the search asks it for. Exits 1 on any failure.
"""

import argparse
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import django
import httpx
from django.core.management import call_command

if TYPE_CHECKING:
    from apps.ingest.models import Root

HERE = Path(__file__).resolve().parent.parent
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
    taken = []
    for question in QUESTIONS * rounds:
        started = time.perf_counter()
        call(question)
        taken.append((time.perf_counter() - started) * 1000)
    return taken


def http_rows(url: str, rounds: int) -> list[Row]:
    """The search of one repository (the largest) and of all, through the API."""
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
        repos = answer(client.get("/tools/ingested-repos"))["repos"]
        if not repos:
            raise RuntimeError("no repository is ingested")
        largest = max(repos, key=lambda repo: repo["counts"]["embedded"])
        total = sum(repo["counts"]["embedded"] for repo in repos)

        def search(question: str, **scope: str) -> None:
            body = {"query": question, "limit": LIMIT, **scope}
            found = answer(client.post("/tools/vector-search", json=body))
            if not found["results"]:
                raise RuntimeError(f"nothing found for {question!r}")

        one = f"HTTP, one repository ({largest['counts']['embedded']:,} chunks)"
        every = f"HTTP, all {len(repos)} repositories ({total:,} chunks)"
        return [
            (one, timed(lambda q: search(q, repository=largest["id"]), rounds)),
            (every, timed(search, rounds)),
        ]


def answer(response: httpx.Response) -> dict:
    """The body of a good answer; RuntimeError for any other."""
    if response.status_code != 200:
        raise RuntimeError(f"{response.request.url}: {response.status_code} {response.text[:200]}")
    return response.json()


def measure_running(options: argparse.Namespace) -> list[Row]:
    return http_rows(options.url.rstrip("/"), options.rounds)


# --- a server of our own --------------------------------------------------------------------------


def measure_own(options: argparse.Namespace) -> list[Row]:
    """Ingest, then serve in this process, which owns the store, and measure from a thread."""
    with tempfile.TemporaryDirectory(prefix="codeinfo-bench-") as temporary:
        base = Path(temporary).resolve()
        folders = [folder.resolve() for folder in options.folders]
        folders = folders or [HERE, copy_of_django(base)]
        port = set_up(base / "data", folders)
        ingest(folders)
        return serve_while(
            port, lambda url: http_rows(url, options.rounds) + own_rows(options.rounds)
        )


def copy_of_django(base: Path) -> Path:
    """Django's own source, out of the way of the git work tree that it may be installed in."""
    installed = Path(django.__file__).parent
    return shutil.copytree(installed, base / "django", ignore=shutil.ignore_patterns("*.pyc"))


def set_up(data: Path, folders: Sequence[Path]) -> int:
    """Django with all its state in `data`. Returns the port it may listen on."""
    port = free_port()
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
        "CODEINFO_DATA_DIR": str(data),
        "CODEINFO_INGEST_BASE": ",".join(map(str, folders)),
        "CODEINFO_REQUIRE_LOGIN": "false",
        "CODEINFO_API_TOKEN": "",
        "CHROMA_URL": "",
        "DATABASE_URL": "",
        "PORT": str(port),
    }
    sys.path.insert(0, str(HERE))
    django.setup()
    call_command("migrate", verbosity=0)
    return port


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def ingest(folders: Sequence[Path]) -> None:
    from apps.ingest import services  # noqa: PLC0415 - after Django's set-up
    from apps.ingest.embedding import DEFAULT_MODEL  # noqa: PLC0415
    from apps.ingest.runs import queue  # noqa: PLC0415 - after Django's set-up

    for folder in folders:
        started = time.perf_counter()
        run = services.start_run(path=str(folder), name=folder.name, model=DEFAULT_MODEL)
        queue.drain()
        run.refresh_from_db()
        if run.state != "completed":
            raise RuntimeError(f"ingest of {folder}: {run.state} {run.last_error}")
        took = time.perf_counter() - started
        print(f"ingested {folder.name}: {run.embedded:,} chunks in {took:.1f} s", file=sys.stderr)


def serve_while(port: int, work: Callable[[str], list[Row]]) -> list[Row]:
    """Serve from this thread while `work` runs in another; its result, or its error."""
    # First, since it installs the reactor.
    from apps.site import server  # noqa: I001, PLC0415
    from twisted.internet import reactor  # noqa: PLC0415
    from codeinfo.asgi import application  # noqa: PLC0415

    pool = ThreadPoolExecutor(1)
    measured: list[Future[list[Row]]] = []

    def begin() -> None:
        measured.append(pool.submit(work, f"http://127.0.0.1:{port}"))
        measured[0].add_done_callback(lambda _: reactor.callFromThread(reactor.stop))

    server.run(application, [f"tcp:port={port}:interface=127.0.0.1"], begin)
    return measured[0].result()


def own_rows(rounds: int) -> list[Row]:
    """The same questions without HTTP, and the store alone, for vectors made beforehand."""
    from apps.ingest import queries  # noqa: PLC0415 - after Django's set-up
    from apps.ingest.embedding import DEFAULT_MODEL, get_embedder  # noqa: PLC0415
    from apps.ingest.vectors.store import get_store  # noqa: PLC0415
    from apps.retrieval.candidates import MARGIN  # noqa: PLC0415
    from apps.retrieval.search import search  # noqa: PLC0415
    from apps.retrieval.types import SearchQuery  # noqa: PLC0415

    roots = queries.published_roots()
    largest = max(roots, key=lambda root: root.embedded)
    store = get_store()
    vectors = {
        question: get_embedder(DEFAULT_MODEL).embed_query(question) for question in QUESTIONS
    }

    def alone(*asked: "Root") -> Call:
        return lambda q: [store.query(root.id, vectors[q], LIMIT * MARGIN) for root in asked]

    return [
        (
            "search(), one repository",
            timed(lambda q: search(SearchQuery(q, largest.name, LIMIT)), rounds),
        ),
        ("search(), all", timed(lambda q: search(SearchQuery(q, None, LIMIT)), rounds)),
        ("store alone, one repository", timed(alone(largest), rounds)),
        ("store alone, all", timed(alone(*roots), rounds)),
    ]


# --- the table ------------------------------------------------------------------------------------


def print_table(rows: Sequence[Row]) -> None:
    """p50 and p95 of each row, and how many times the bare store's p50 that is."""
    bases = {
        scope: median(taken)
        for name, taken in rows
        for scope in [scope_of(name)]
        if "store" in name
    }
    print(f"{'':<46}{'p50 ms':>9}{'p95 ms':>9}{'× store':>9}")
    for name, taken in rows:
        ordered = sorted(taken)
        p50, p95 = median(ordered), ordered[int(len(ordered) * 0.95)]
        base = bases.get(scope_of(name))
        times = f"{p50 / base:.1f}" if base else "-"
        print(f"{name:<46}{p50:>9.2f}{p95:>9.2f}{times:>9}")


def scope_of(name: str) -> str:
    return "all" if ", all" in name else "one"


if __name__ == "__main__":
    sys.exit(main())
