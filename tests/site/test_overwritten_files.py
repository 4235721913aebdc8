"""Files of the index that are written to while a server has mapped them: a program, or a copy that
was restored in their place."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.index.mapped.files import MAPPED_BYTES
from tests.browser.product import Product, running
from tests.site.stopped import call
from tests.support import damage
from tests.support.ingested import write_files
from tests.support.served import ingest_into
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

FILES = 1_800  # so many chunks that their part is mapped
QUESTION = {"query": "a sail"}
PATTERN = {"pattern": r"return wind \* 17$"}
LOST = "a part of the index is lost: ships"


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("overwritten")
    with running(folder, CODEINFO_INGEST_REPAIR="ask") as product:
        ingest_into(product, write_files(product.repos / "ships", damage.many_files(FILES)))
        wait_until(lambda: grams(product))
        yield product


def grams(product: Product) -> list[Path]:
    return list(product.data.glob("grams/*.grams"))


def zero_middle(path: Path) -> None:
    """Zero a third of a file, in its place."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 3)
        file.write(bytes(size // 3))


@pytest.mark.fault("A file of the index changes on the disk")
def test_grep_finds_all_without_the_n_grams(product: Product) -> None:
    before = call(product, "/tools/grep", PATTERN)
    assert [match["relPath"] for match in before["results"]] == ["ship_17.py"]
    for path in grams(product):
        zero_middle(path)
    answer = call(product, "/tools/grep", PATTERN)
    assert answer["results"] == before["results"]
    assert "without n-grams were read one by one" in answer["slow"]


@pytest.mark.fault("A file of the index changes on the disk")
def test_a_server_tells_of_a_part_with_the_first_answer(product: Product) -> None:
    assert call(product, "/tools/vector-search", QUESTION)["results"]
    (part,) = [p for p in product.data.glob("index/*.part") if p.stat().st_size > MAPPED_BYTES]
    zero_middle(part)
    assert call(product, "/tools/vector-search", QUESTION)["degraded"] == LOST
    assert call(product, "/tools/symbol-definitions", {"name": "sail_17"})["degraded"] == LOST
    wait_until(lambda: call(product, "/health")["parts"]["index"]["word"] == "Damaged")
