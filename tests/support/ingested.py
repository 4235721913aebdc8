"""Helpers of several apps' tests: a small repository, and ingesting one for real."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index import queries
from apps.index.models import IndexLock, IngestRun, Root
from apps.index.parsing.finder import reset_finder
from apps.ingest import services
from apps.ingest.runs import queue
from apps.lookup.symbols import project
from tests.support.parts import clear_index

SAMPLE: dict[str, str] = {
    "README.md": (
        "# Lighthouse\n\n"
        "A small service that watches ships.\n\n"
        "## Install\n\n"
        "Run `pip install lighthouse` and start it with `lighthouse serve`.\n"
    ),
    "main.txt": "This is the ingest test fixture for CodeInfo2.\n",
    "src/retry.py": (
        '"""Trying again after a failure."""\n\n'
        "import time\n\n\n"
        "def backoff_delay(attempt: int, base: float = 0.5) -> float:\n"
        '    """Seconds to wait before the given attempt, doubling each time."""\n'
        "    return base * 2**attempt\n\n\n"
        "class RetryPolicy:\n"
        '    """How often a call is repeated."""\n\n'
        "    def __init__(self, limit: int) -> None:\n"
        "        self.limit = limit\n\n"
        "    def should_retry(self, attempt: int) -> bool:\n"
        "        return attempt < self.limit\n"
    ),
    "src/store.js": (
        "export function saveShip(database, ship) {\n"
        "  return database.insert('ships', ship);\n"
        "}\n\n"
        "export function loadShip(database, name) {\n"
        "  return database.find('ships', { name });\n"
        "}\n"
    ),
    "package-lock.json": '{"lockfileVersion": 3}\n',
}
# A file that calls one of the sample.
CALLER = {
    "src/work.py": (
        "from src.retry import RetryPolicy\n\n\ndef again():\n    return RetryPolicy(3)\n"
    ),
}


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below `folder`, making the folders they need; returns `folder`."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    """What `write_files` wrote, or would have to, for another folder to be the same."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


def run_ingest(folder: Path, name: str = "", **options: object) -> IngestRun:
    """Start an ingest of `folder` and do it, in this thread; the run as it ended."""
    run = services.start_run(
        **{"path": str(folder), "name": name or folder.name, "model": DEFAULT_MODEL, **options}
    )
    queue.drain()
    run.refresh_from_db()
    return run


def ingest(folder: Path, name: str = "", **options: object) -> Root:
    """Ingest `folder`, which must succeed; its root."""
    run = run_ingest(folder, name, **options)
    assert run.state == "completed", run.last_error
    return queries.find_root(run.path)


def ingest_alone(folder: Path, name: str = "", **options: object) -> Root:
    """Ingest `folder` as if no other root had its files, so that all of it is made anew."""
    with patch("apps.ingest.runs.shared.find_store", return_value=None):
        return ingest(folder, name, **options)


def ingest_sample(folder: Path, name: str = "lighthouse") -> Root:
    """The sample repository, written to `folder` and ingested."""
    return ingest(write_files(folder, SAMPLE), name)


def outdate(root: Root) -> None:
    """As if another version had cut a root into its chunks: the next run makes all of them anew."""
    Root.objects.filter(id=root.id).update(chunker_version="")


@contextmanager
def ingested_once(
    blocker: Any, folder: Path, repositories: Mapping[str, Mapping[str, str | bytes]]
) -> Iterator[None]:
    """Ingest repositories (name → path → content) below a folder, for the tests of a module.

    blocker: the fixture `django_db_blocker`. All roots and their indexes are deleted at the end.
    """
    with blocker.unblock():
        for name, files in repositories.items():
            ingest(write_files(folder / name, files), name)
    yield
    with blocker.unblock():
        for model in (Root, IngestRun, IndexLock):
            model.objects.all().delete()
    clear_index()
    for reset in (reset_finder, project.reset_facts):
        reset()
