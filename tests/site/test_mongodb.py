"""MongoDB as the database, as far as it can be tried without one: see `mongodb_offline` and
`mongodb_away`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.sources import HOME

pytestmark = pytest.mark.door


def report_of(script: str, data: Path, **environ: str) -> dict[str, Any]:
    """What a script prints, in a process with these settings."""
    known = {
        "PATH": os.environ["PATH"],
        "CODEINFO_DATA_DIR": str(data),
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
    }
    done = subprocess.run(
        [sys.executable, "-m", f"tests.site.{script}"],
        cwd=HOME,
        env=known | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def offline_report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the product makes of itself on MongoDB; its system checks have passed."""
    url = "mongodb://127.0.0.1:9/other?serverSelectionTimeoutMS=50"
    return report_of("mongodb_offline", tmp_path_factory.mktemp("mongodb"), DATABASE_URL=url)


@pytest.fixture(scope="module")
def away_report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What it says at its doors of a server that answers, and then is stopped."""
    return report_of("mongodb_away", tmp_path_factory.mktemp("away"))


def test_a_server_that_answers_is_connected(away_report: dict[str, Any]) -> None:
    assert away_report["there"] == {
        "health": True,
        "doctor": ["ok", "Connected", "MongoDB"],
        "away": False,
        "conversations": [200, {"items": []}],
    }


def test_a_server_that_is_stopped_is_away(away_report: dict[str, Any]) -> None:
    seen = away_report["away"]
    assert (seen["health"], seen["away"]) == (False, True)
    level, word, detail = seen["doctor"]
    assert (level, word) == ("bad", "Away")
    assert re.fullmatch(
        r"The database at (127\.0\.0\.1:\d+) does not answer \(\1: \[Errno \d+\] Connection refused"
        r"\): start it, or correct DATABASE_URL\. Chat works meanwhile\.",
        detail,
    )
    status, body = seen["conversations"]
    assert (status, body["code"]) == (503, "DATABASE_UNAVAILABLE")


def test_of_many_queries_only_some_wait_for_a_server_that_is_away(
    away_report: dict[str, Any],
) -> None:
    waits = 50 * 0.1  # serverSelectionTimeoutMS
    assert away_report["queries"] < waits / 2


def test_chat_goes_on_in_memory_while_it_is_away(away_report: dict[str, Any]) -> None:
    assert away_report["chat"] == {"started": 202, "answer": ["ok", "ok"], "page": [200, True]}


def test_a_missing_driver_is_named_with_its_remedy(tmp_path: Path) -> None:
    without = "import sys; sys.modules['django_mongodb_backend'] = None; import codeinfo.settings"
    done = subprocess.run(
        [sys.executable, "-c", without],
        cwd=HOME,
        env={"CODEINFO_DATA_DIR": str(tmp_path), "DATABASE_URL": "mongodb://127.0.0.1:9/other"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--require-hashes -r requirements-mongodb.txt" in done.stderr.splitlines()[-1]


@pytest.mark.door
def test_every_migration_can_be_applied_and_none_is_missing(offline_report: dict[str, Any]) -> None:
    assert offline_report["changes"] == []
    assert offline_report["database"] == "other"


@pytest.mark.parametrize("name", ["one_live_run_per_conversation"])
def test_the_locks_are_unique_indexes_of_live_runs(
    offline_report: dict[str, Any], name: str
) -> None:
    index = offline_report["indexes"][name]
    assert index["unique"] and list(index["key"]) == ["conversation_id"]
    assert index["partialFilterExpression"]["status"] == {"$eq": "running"}


def test_the_queries_of_locks_and_lists_have_a_pipeline(offline_report: dict[str, Any]) -> None:
    assert {"$match": {"status": "running"}} in offline_report["pipelines"]["running turns"]
    assert {"$limit": 21} in offline_report["pipelines"]["conversations"]
    assert all(offline_report["pipelines"].values())


def test_what_is_typed_into_the_palette_and_the_lists_is_plain_text(
    offline_report: dict[str, Any],
) -> None:
    asked = offline_report["pipelines"]
    palette, composer = json.dumps(asked["palette files"]), json.dumps(asked["composer"])
    for typed in (r"\[b\(", "(^|/)[[]b[(][^/]*$"):
        assert json.dumps(typed)[1:-1] in palette
    assert json.dumps(r"src/a\(")[1:-1] in composer
    assert json.dumps(r"back\.off")[1:-1] in json.dumps(asked["snippets"])
    for name, words in (("conversations having", ("why", "100%", r"\(b\)")), ("snippets", ())):
        assert all(json.dumps(word)[1:-1] in json.dumps(asked[name]) for word in words)
        assert "$lookup" in json.dumps(asked[name])
    assert len(asked["list of conversations"]) > 1


def test_the_keys_of_djangos_own_apps_are_object_ids(offline_report: dict[str, Any]) -> None:
    assert set(offline_report["keys"].values()) == {"ObjectIdAutoField"}
    assert {"auth.user", "admin.logentry", "contenttypes.contenttype"} <= set(
        offline_report["keys"]
    )
