"""A data folder of an earlier version opens with everything in it.

`before-the-rooms.tar.xz` was written by the commit before the code moved to its present rooms: one
repository of two files, one conversation. Later versions add a folder of theirs.
"""

import tarfile
from pathlib import Path

import httpx
import pytest

from tests.browser.product import running
from tests.site.test_unknown_roots import doctor

pytestmark = pytest.mark.door

FOLDERS = Path(__file__).parent / "data_folders"
SECONDS = 60


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDERS.iterdir()))
def test_roots_answers_and_conversations_exist_and_nothing_is_rebuilt(
    tmp_path: Path, name: str
) -> None:
    with tarfile.open(FOLDERS / name) as archive:
        archive.extractall(tmp_path / "data", filter="data")
    with running(tmp_path) as product, httpx.Client(base_url=product.url, timeout=SECONDS) as http:
        [root] = http.get("/ingest/roots").json()["roots"]
        assert (root["name"], root["status"], root["damage"]) == ("lighthouse", "completed", None)
        assert root["counts"] == {"files": 2, "chunks": 2, "embedded": 2, "skipped": 0}

        for query, path in {
            "How fast does the lamp rotate?": "lamp.py",
            "README": "README.md",
        }.items():
            found = http.post("/tools/vector-search", json={"query": query}).json()
            assert path in {match["relPath"] for match in found["results"]}

        [answer, question] = http.get("/conversations/old-talk/turns").json()["items"]
        assert question["content"] == "How fast does the lamp rotate?"
        assert "`lighthouse/lamp.py:1-6`" in answer["content"]

        verified = doctor(product, "verify_index")
        assert verified.returncode == 0, verified.stdout + verified.stderr
