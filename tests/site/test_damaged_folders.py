"""Data folders that are damaged, as a real server, `/health` and `manage.py doctor` tell of them.

Each is damaged between two starts. `python -m tests.site.test_damaged_folders` prints what is said.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.product import Product
from tests.site.stopped import PATIENCE, Home, call, made
from tests.support import damage
from tests.support.damage import Harm

pytestmark = pytest.mark.door

# Of the store and of a root; tests/ingest/test_damage.py has all.
KINDS: tuple[Harm, ...] = (damage.database_overwritten, damage.index_deleted)


def until(answers: Callable[[], Any], is_so: Callable[[Any], bool]) -> Any:
    """What is said once it is so."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if is_so(answer := answers()):
            return answer
    raise AssertionError(answer)


def roots(product: Product) -> list[Any]:
    found: list[Any] = call(product, "/ingest/roots")["roots"]
    return found


def answers_of(home: Home, how: Harm) -> dict[str, Any]:
    """What is said of a folder that is damaged so, by whom; it is mended in the end."""
    how(home.folder / "data" / "chroma", home.ships)
    answers: dict[str, Any] = {"doctor": home.doctor()}
    with home.serve(CODEINFO_INGEST_REPAIR="ask") as product:
        answers["/health"] = until(lambda: call(product, "/health"), is_bad)
        answers["search"] = call(product, "/tools/vector-search", {"query": "sail_17"})
        answers["roots"] = roots(product)
    with home.serve() as product:
        until(lambda: roots(product), lambda found: not any(each["damage"] for each in found))
        answers["mended"] = call(product, "/tools/vector-search", {"query": "sail_17"})
        answers["/health in the end"] = until(lambda: call(product, "/health"), is_good)
    return answers


def is_bad(health: Any) -> bool:
    return bool(health["parts"]["chroma"]["state"] == "bad")


def is_good(health: Any) -> bool:
    return bool(health["parts"]["chroma"]["state"] == "ok")


def vector_store_of(doctor: str) -> str:
    """Its line and the one below it."""
    lines = doctor.splitlines()
    at = next(number for number, line in enumerate(lines) if "Vector store" in line)
    return "\n".join(lines[at : at + 2])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return made(tmp_path_factory.mktemp("damaged"))


@pytest.mark.fault("Vectors are lost", "Vectors are damaged")
@pytest.mark.parametrize("how", KINDS)
def test_a_damaged_folder_is_told_answers_and_is_mended(home: Home, how: Harm) -> None:
    answers = answers_of(home, how)
    assert "BROKEN  Vector store" in answers["doctor"]
    assert "ingests these folders again" in answers["doctor"]
    assert "1 broken" in answers["doctor"]
    health = answers["/health"]
    assert (health["status"], health["degraded"]) == ("ok", ["chroma"])
    assert "ships: 450 of 450 vectors are missing" in health["parts"]["chroma"]["detail"]
    assert answers["search"]["results"][0]["relPath"] == "ship_17.py"
    for answer in ("search", "mended"):
        assert "degraded" not in answers[answer]
        assert all(match["score"] is not None for match in answers[answer]["results"])


def show() -> None:
    """Print the answers for each kind of damage.

    Call it with `manage.py shell -c "from tests.site.test_damaged_folders import show; show()"`.
    """
    with tempfile.TemporaryDirectory() as folder:
        home = made(Path(folder))
        for how in KINDS:
            answers = answers_of(home, how)
            print(f"\n## {how.__name__}\ndoctor:\n{vector_store_of(answers['doctor'])}")
            health = answers["/health"]
            print(f"/health: degraded {health['degraded']}, {health['parts']['chroma']}")
            search, repaired = answers["search"], answers["/health in the end"]
            print(f"search: {len(search['results'])} results")
            print(f"mended: {repaired['parts']['chroma']}")
