"""Data folders whose index is damaged, as a real server, `/health` and `manage.py doctor` tell of
them. Each is damaged between two starts."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.product import Product
from tests.site.stopped import Home, call, made
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

Harm = Callable[[Path], None]


def part_deleted(data: Path) -> None:
    for part in (data / "index").glob("*.part"):
        part.unlink()


def part_truncated(data: Path) -> None:
    for part in (data / "index").glob("*.part"):
        with part.open("r+b") as file:
            file.truncate(part.stat().st_size // 2)


def texts_deleted(data: Path) -> None:
    shutil.rmtree(data / "texts")


def middle_changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def part_changed(data: Path) -> None:
    middle_changed(max((data / "index").glob("*.part"), key=lambda path: path.stat().st_size))


def texts_changed(data: Path) -> None:
    for segment in (data / "texts").glob("*.zst"):
        middle_changed(segment)


def until(answers: Callable[[], Any], is_so: Callable[[Any], bool]) -> Any:
    """What is said once it is so."""

    def said() -> Any:
        return answer if is_so(answer := answers()) else None

    return wait_until(said)


def roots(product: Product) -> list[Any]:
    found: list[Any] = call(product, "/ingest/roots")["roots"]
    return found


def answers_of(home: Home, how: Harm) -> dict[str, Any]:
    """What is said of a folder that is damaged so, by whom; it is mended in the end."""
    how(home.folder / "data")
    answers: dict[str, Any] = {"doctor": home.doctor()}
    with home.serve(CODEINFO_INGEST_REPAIR="ask") as product:
        answers["/health"] = until(lambda: call(product, "/health"), is_bad)
    with home.serve() as product:
        until(lambda: roots(product), lambda found: not any(each["damage"] for each in found))
        answers["mended"] = call(product, "/tools/vector-search", {"query": "sail_17"})
        until(lambda: call(product, "/health"), is_good)
    return answers


def is_bad(health: Any) -> bool:
    return bool(health["parts"]["index"]["state"] == "bad")


def is_good(health: Any) -> bool:
    return bool(health["parts"]["index"]["state"] == "ok")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return made(tmp_path_factory.mktemp("damaged"))


@pytest.mark.fault("A part of the index is lost")
@pytest.mark.parametrize(
    "how", [part_deleted, part_truncated, part_changed, texts_deleted, texts_changed]
)
def test_a_damaged_folder_is_told_and_mended(home: Home, how: Harm) -> None:
    answers = answers_of(home, how)
    assert "BROKEN  Index" in answers["doctor"] and "1 broken" in answers["doctor"]
    assert "ingests these folders again" in answers["doctor"]
    health = answers["/health"]
    assert (health["status"], health["degraded"]) == ("ok", ["index"])
    assert "ships: " in health["parts"]["index"]["detail"]
    assert " missing" in health["parts"]["index"]["detail"]
    assert answers["mended"]["results"][0]["relPath"] == "ship_17.py"
    assert "degraded" not in answers["mended"]
