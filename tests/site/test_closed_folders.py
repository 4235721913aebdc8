"""Folders of the index that codeinfo may not read or write: only a person can mend that, so
`/health`, `doctor` and a search must say so, and nothing may be lost."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.browser.product import SERVE, running
from tests.site.commands import WITHOUT_RIGHTS, Done, env_of, manage
from tests.site.stopped import Home, call, made
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    if os.geteuid() != 0 or shutil.which(WITHOUT_RIGHTS[0]) is None:
        pytest.skip("only root can give up the right to pass over permissions")
    return made(tmp_path_factory.mktemp("closed"))


@contextmanager
def without_rights(folder: Path, bits: int) -> Iterator[None]:
    before = folder.stat().st_mode
    folder.chmod(bits)
    try:
        yield
    finally:
        folder.chmod(before)


def doctor(home: Home) -> Done:
    env = env_of(home.folder / "data") | {"CODEINFO_INGEST_BASE": str(home.folder / "repos")}
    return manage(env, "doctor", user=True)


@pytest.mark.parametrize(("name", "bits"), [("index", 0o000), ("texts", 0o500)])
def test_health_and_doctor_name_a_folder_without_rights(home: Home, name: str, bits: int) -> None:
    folder = home.folder / "data" / name
    with without_rights(folder, bits):
        diagnosis = doctor(home)
        with running(home.folder, command=(*WITHOUT_RIGHTS, *SERVE)) as product:
            health = call(product, "/health")
    assert str(folder) in diagnosis.stdout and diagnosis.returncode == 1, diagnosis.stdout
    assert health["parts"]["disk"]["state"] == "bad"
    assert str(folder) in health["parts"]["disk"]["detail"]
    assert "disk" in health["degraded"]


@pytest.mark.parametrize("bits", [0o000, 0o500])
def test_chroma_without_rights_is_told_and_not_missed(home: Home, bits: int) -> None:
    folder = home.folder / "data" / "chroma"
    folder.mkdir(exist_ok=True)
    with (
        without_rights(folder, bits),
        running(
            home.folder, command=(*WITHOUT_RIGHTS, *SERVE), CODEINFO_CHROMA="follow"
        ) as product,
    ):
        wait_until(lambda: call(product, "/health")["parts"]["chroma"]["word"] == "Failed", 120)
        parts = call(product, "/health")["parts"]
        assert (parts["chroma"]["state"], parts["disk"]["state"]) == ("warn", "ok")
        answer = call(product, "/tools/vector-search", {"query": "sail_17"})
        assert answer["results"] and not answer.get("degraded"), answer


def test_after_that_everything_is_found_again(home: Home) -> None:
    with running(home.folder) as product:
        for query in ("sail_17", "backoff_delay"):
            answer = call(product, "/tools/vector-search", {"query": query})
            assert answer["results"] and not answer.get("degraded"), answer
