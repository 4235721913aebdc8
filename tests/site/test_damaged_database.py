"""A database with a page that is no page: what a real server answers, and who tells of it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.browser.product import Product, running
from tests.damage.asking import chat
from tests.site.stopped import PATIENCE, Home, call, made
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

PAGE_BYTES = 4096


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return made(tmp_path)


Page = tuple[int, bytes]  # number and content


def zero_first_page(data: Path, table: str) -> Page:
    """Zero the page of the database with which a table begins, and return what it was."""
    path = data / "codeinfo.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (number,) = database.execute(query, [table]).fetchone()
    content = path.read_bytes()[(number - 1) * PAGE_BYTES : number * PAGE_BYTES]
    write_page(data, (number, bytes(PAGE_BYTES)))
    return number, content


def write_page(data: Path, page: Page) -> None:
    number, content = page
    with (data / "codeinfo.sqlite3").open("r+b") as file:
        file.seek((number - 1) * PAGE_BYTES)
        file.write(content)


def told(product: Product) -> dict[str, str] | None:
    part: dict[str, str] = call(product, "/health")["parts"]["database"]
    return part if part["state"] == "bad" else None


@pytest.mark.fault("The database is damaged")
def test_a_malformed_page_that_nobody_reads_is_told_after_a_start(home: Home) -> None:
    zero_first_page(home.folder / "data", "auth_group")
    doctor = home.doctor()
    assert "BROKEN  Database" in doctor and "auth_group: " in doctor
    with home.serve() as product:
        part = wait_until(lambda: told(product))
        assert part["word"] == "Damaged" and "auth_group" in part["detail"]
        assert call(product, "/tools/vector-search", {"query": "sail_17"})["results"]


@pytest.mark.fault("The database is damaged")
def test_a_malformed_page_is_a_typed_error_and_told_at_once(home: Home) -> None:
    with home.serve() as product:
        chat(product)
        zero_first_page(product.data, "conversations_turn")
        answer = wait_until(lambda: refused(product, "/conversations/one/turns"))
        assert answer.json()["code"] == "DATABASE_UNAVAILABLE", answer.text
        part = told(product)
        assert part and part["word"] == "Damaged" and "malformed" in part["detail"]
        assert part["fix"] in httpx.get(f"{product.url}/ui/site/connected", timeout=PATIENCE).text


def refused(product: Product, path: str) -> httpx.Response | None:
    """The answer, once it is 503: connections read the file anew after some seconds."""
    answer = httpx.get(f"{product.url}{path}", timeout=PATIENCE)
    assert answer.status_code in (200, 503), answer.text
    return answer if answer.status_code == 503 else None


def is_well(product: Product) -> bool:
    return bool(call(product, "/health")["parts"]["database"]["state"] == "ok")


@pytest.mark.fault("The database is damaged")
def test_a_restored_database_is_well_as_soon_as_it_was_compared(home: Home) -> None:
    data = home.folder / "data"
    page = zero_first_page(data, "auth_group")
    with home.serve() as product:
        wait_until(lambda: told(product))
    write_page(data, page)
    assert "auth_group" not in home.doctor()
    with home.serve() as product:
        assert is_well(product)


@pytest.mark.fault("The database is damaged")
def test_a_database_without_an_index_is_compared_after_damage(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        last = {"finished_at": 1.0, "done": 0, "total": 0, "database": "auth_group: Page 9"}
        (product.data / "scrub.json").write_text(json.dumps(last))
        assert not is_well(product)
    with running(tmp_path) as product:
        wait_until(lambda: is_well(product))


@pytest.mark.fault("The database is damaged")
def test_damage_that_a_reader_met_is_over_after_a_compare_without_it(home: Home) -> None:
    with home.serve() as product:
        chat(product)
        page = zero_first_page(product.data, "conversations_turn")
        wait_until(lambda: refused(product, "/conversations/one/turns"))
        write_page(product.data, page)
        assert not is_well(product)
        # A search that misses a part has all files compared.
        next((product.data / "index").glob("*.part")).unlink()
        call(product, "/tools/vector-search", {"query": "sail_17"})
        wait_until(lambda: is_well(product))
