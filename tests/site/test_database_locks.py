"""SQLite's locks on its files: they end with any descriptor of the file that a process closes."""

import sys
from pathlib import Path

import pytest

from tests.browser.product import Product, running
from tests.damage.asking import chat
from tests.site.stopped import call

pytestmark = [
    pytest.mark.door,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux lists the locks of all processes"),
]


def locks(product: Product) -> list[str]:
    """What the server has locked of the index of the database's log, as long as it has it open."""
    file = (product.data / "codeinfo.sqlite3-shm").stat()
    held = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return [
        " ".join(line[1:4] + line[6:])
        for line in held
        if line[4] == str(product.pid) and line[5].endswith(f":{file.st_ino}")
    ]


def test_a_look_at_the_database_leaves_the_servers_locks(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        chat(product)
        before = locks(product)
        assert before, "SQLite locks the file for as long as it has mapped it"
        for _ in range(2):
            assert call(product, "/health")["parts"]["database"]["state"] == "ok"
        assert locks(product) == before
