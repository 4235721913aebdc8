"""A repository of an upload service, ingested once for all tests of a module."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lookup.symbols.conftest import Post, post
from tests.support.ingested import ingested_once

__all__ = ["FILES", "UPLOAD", "Post", "depot", "post"]

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


@pytest.fixture(scope="module")
def depot(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of `depot`. A test must leave the files as they are."""
    base = Path(os.path.realpath(tmp_path_factory.mktemp("context")))
    with ingested_once(django_db_blocker, base, {"depot": FILES}):
        yield base / "depot"
