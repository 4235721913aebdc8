"""A repository of an upload service, ingested once for all tests of a module."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.index.lexical import reset_lexical
from apps.index.models import IndexLock, IngestRun, Root
from apps.index.parsing.finder import reset_finder
from apps.index.vectors.store import get_store, reset_store
from tests.support.ingested import ingest, write_files

UPLOAD = '''"""Uploads files in parts."""

from depot.backoff import wait_seconds
from depot.store import Store


class Uploader:
    """Sends the parts of a file to a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def send_with_retry(self, part: bytes, attempts: int = 5) -> bool:
        """Send one part of an upload; a failed upload is retried after a growing wait."""
        for attempt in range(attempts):
            if self.store.put(part):
                return True
            self.store.pause(wait_seconds(attempt))
        return False
'''
BACKOFF = '''"""How long a retry waits."""

BASE = 0.5


def wait_seconds(attempt: int) -> float:
    """The seconds before a retry: twice as long after each failed attempt."""
    return BASE * 2**attempt
'''
FETCH = '''"""Downloads files in parts."""

from depot.backoff import wait_seconds


class Downloader:
    def receive_with_retry(self, name: str, attempts: int = 5) -> bytes:
        """Receive one part of a download; a failed download is retried after a growing wait."""
        for attempt in range(attempts):
            if found := self.store.get(name):
                return found
            self.store.pause(wait_seconds(attempt))
        return b""
'''
MIRROR = UPLOAD.replace("Uploader", "Mirror").replace("send_with_retry", "push_again")
FILES: dict[str, str | bytes] = {
    "depot/upload.py": UPLOAD,
    "depot/backoff.py": BACKOFF,
    "depot/download.py": FETCH,
    "mirror/push.py": MIRROR,
    "depot/store.py": (
        "class Store:\n    def put(self, part):\n        return True\n\n"
        "    def pause(self, seconds):\n        pass\n"
    ),
    "depot/jobs.py": (
        "from depot.upload import Uploader\n\n\n"
        "def nightly(store, parts):\n"
        '    """Upload what the day has left."""\n'
        "    return [Uploader(store).send_with_retry(part) for part in parts]\n"
    ),
    "tests/test_upload.py": (
        "from depot.upload import Uploader\n\n\n"
        "def test_a_failed_upload_is_sent_again(store):\n"
        "    assert Uploader(store).send_with_retry(b'x')\n"
    ),
    **{
        f"depot/part_{number}.py": f"def tide_{number}(moon):\n    return moon + {number}\n"
        for number in range(12)
    },
}

Post = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def depot(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of `depot`. A test must leave the files as they are."""
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("context"))) / "depot"
    reset_store()
    with django_db_blocker.unblock():
        ingest(write_files(folder, FILES), "depot")
    yield folder
    with django_db_blocker.unblock():
        for root_id in get_store().collections():
            get_store().drop(root_id)
        for model in (Root, IngestRun, IndexLock):
            model.objects.all().delete()
    for reset in (reset_finder, reset_lexical, reset_store):
        reset()


@pytest.fixture
def post(client: Client) -> Post:
    """post("context", question="…") is the status and the JSON of the answer."""

    def posted(tool: str, **body: Any) -> tuple[int, dict[str, Any]]:
        response = client.post(f"/tools/{tool}", body, content_type="application/json")
        return response.status_code, response.json()

    return posted
