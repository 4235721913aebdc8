"""MongoDB as the database, as far as it can be tried without one: see `mongodb_offline`."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.house.sources import HOME

pytestmark = pytest.mark.door


@pytest.fixture(scope="module")
def offline_report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the product makes of itself on MongoDB; its system checks have passed."""
    environ = {
        "PATH": os.environ["PATH"],
        "CODEINFO_DATA_DIR": str(tmp_path_factory.mktemp("mongodb")),
        "DATABASE_URL": "mongodb://127.0.0.1:9/other?serverSelectionTimeoutMS=50",
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.site.mongodb_offline"],
        cwd=HOME,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


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


def test_the_keys_of_djangos_own_apps_are_object_ids(offline_report: dict[str, Any]) -> None:
    assert set(offline_report["keys"].values()) == {"ObjectIdAutoField"}
    assert {"auth.user", "admin.logentry", "contenttypes.contenttype"} <= set(
        offline_report["keys"]
    )
