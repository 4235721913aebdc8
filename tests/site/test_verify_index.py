"""`manage.py verify_index` with a running server, without one, and where another is in the way."""

import json
import shutil
from pathlib import Path

import pytest

from tests.browser.product import running
from tests.site.commands import manage_data
from tests.support.ingested import SAMPLE, write_files
from tests.support.locked import used_elsewhere
from tests.support.served import ingest_into

pytestmark = pytest.mark.door


def test_the_running_server_verifies_and_repairs_or_else_the_command(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as product:
        repo = write_files(product.repos / "lighthouse", SAMPLE)
        ingest_into(product, repo)
        done = manage_data(product.data, "verify_index", "--source")
        assert done.returncode == 0, done.stderr
        assert "0 differences in 1 root." in done.stdout and str(repo) in done.stdout
        write_files(repo, {"src/new.py": "def fresh() -> int:\n    return 1\n"})
        done = manage_data(product.data, "verify_index", "--source", "--json", "lighthouse")
        assert done.returncode == 1
        (root,) = json.loads(done.stdout)["roots"]
        assert [each["kind"] for each in root["differences"]] == ["file_new"]
        done = manage_data(product.data, "verify_index", "--source", "--repair")
        assert done.returncode == 0, done.stderr
        assert "1 repaired" in done.stdout
        done = manage_data(product.data, "verify_index", "nowhere")
        assert done.returncode == 1 and "No ingested folder nowhere" in done.stderr
        assert "Traceback" not in done.stderr
    shutil.rmtree(product.data / "index")
    done = manage_data(product.data, "verify_index")
    assert done.returncode == 1 and "index_unreadable" in done.stdout
    done = manage_data(product.data, "verify_index", "--repair", "--source")
    assert done.returncode == 0, done.stderr


def test_a_folder_that_another_process_uses_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert manage_data(data, "migrate").returncode == 0
    with used_elsewhere(data):
        done = manage_data(data, "verify_index")
    assert done.returncode == 1
    assert "Another process uses the data folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_a_database_is_reported(tmp_path: Path) -> None:
    done = manage_data(tmp_path / "data", "verify_index")
    assert done.returncode == 1
    assert "The database does not answer" in done.stderr and "Traceback" not in done.stderr
