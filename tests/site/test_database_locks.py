"""SQLite's locks on its files: they end with any descriptor of the file that a process closes.

Without them, the next process that opens a database takes itself for the only one: it empties the
index of the log, which this one has mapped, and deletes the log.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from apps.core.security.menu import PAGES
from tests.browser.product import Product, running
from tests.damage import asking
from tests.site.commands import Done, env_of, manage
from tests.site.stopped import PATIENCE
from tests.support.git import commit_all, init
from tests.support.ingested import CALLER, SAMPLE, write_files
from tests.support.served import ingest_into
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.door,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux lists the locks of all processes"),
]

INDEXES = {"codeinfo.sqlite3-shm", "index.sqlite3-shm"}
# A mapping of a file: device and inode, then its path.
MAPPED = re.compile(r"^\S+ \S+ \S+ \S+ (\d+)\s+(/.*-shm)$", re.MULTILINE)


def mapped(pid: int) -> set[tuple[str, Path]]:
    """Inode and path of each index of a log that a process has mapped: SQLite has it open."""
    with suppress(OSError):  # it has ended
        text = Path(f"/proc/{pid}/maps").read_text()
        return {(inode, Path(path)) for inode, path in MAPPED.findall(text)}
    return set()


def processes(pid: int) -> Iterator[int]:
    """A server and what it has started."""
    yield pid
    with suppress(OSError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from processes(int(child))


def unlocked(product: Product) -> list[str]:
    """The files that a process of the server has open by SQLite and has not locked."""
    found = []
    for pid in processes(product.pid):
        before = mapped(pid)
        held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        locked = {line[5].rpartition(":")[2] for line in held if line[4] == str(pid)}
        for inode, index in before & mapped(pid):
            database = Path(str(index).removesuffix("-shm"))
            wanted = {index: inode, database: str(database.stat().st_ino)}
            found += [f"{pid}: {path}" for path, number in wanted.items() if number not in locked]
    return found


def open_indexes(product: Product) -> set[str]:
    """Of which databases any process of the server has the index of the log open."""
    return {path.name for pid in processes(product.pid) for _, path in mapped(pid)}


def command(product: Product, *words: str) -> Done:
    return manage(env_of(product.data, CODEINFO_INGEST_BASE=str(product.repos)), *words)


def test_nothing_that_a_server_is_asked_ends_its_locks(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        repository = write_files(init(product.repos / "lighthouse"), SAMPLE | CALLER)
        commit_all(repository)
        ingest_into(product, repository)
        asking.chat(product)
        wait_until(lambda: open_indexes(product) >= INDEXES)
        with httpx.Client(base_url=product.url, timeout=PATIENCE) as client:
            api = client.get("/api/schema").json()["paths"]
            reads = [path for path, verbs in api.items() if "get" in verbs and "{" not in path]
            for path in {*(page.path for page in PAGES), *reads} - {"/logs/stream"}:
                client.get(path)
                assert not unlocked(product), path
        for _ in range(2):
            asking.ask(product)
            assert not unlocked(product)
        for words in (
            ["doctor"],
            ["verify_index", "--source"],
            ["backup", str(tmp_path / "backup.tar.gz")],
        ):
            done = command(product, *words)
            assert not unlocked(product), (words, done.stdout, done.stderr)
        assert open_indexes(product) >= INDEXES


def test_the_ingest_of_a_folder_with_the_database_does_not_open_it(tmp_path: Path) -> None:
    repository = write_files(tmp_path / "repos" / "lighthouse", SAMPLE)
    database = repository / "code"
    with running(tmp_path, DATABASE_URL=f"sqlite:///{database}") as product:
        ingest_into(product, repository)
        assert not unlocked(product)
        ingest_into(product, write_files(product.repos / "other", CALLER))
        assert not unlocked(product)
