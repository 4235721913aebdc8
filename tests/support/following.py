"""An embedded Chroma in the data folder of this process, for tests of mode `vector`."""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.test import override_settings

from apps.core.concurrency import background
from apps.core.system import programs
from apps.index.vectors import chroma
from apps.index.vectors.follower import follow
from apps.index.vectors.following import progress
from apps.index.vectors.store import folder, reset_client
from tests.support import forks

start = programs.start


def start_forked(command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
    """As `programs.start`. A process that computes is forked from one that has imported Chroma,
    which takes longer than what most tests have it do."""
    if (*command,)[: len(background.COMMAND)] != background.COMMAND:
        return start(command, **options)
    return forks.Forked(command[command.index("-m") :], libraries=("chromadb",), cwd="/", **options)


@contextmanager
def chroma_deleted() -> Iterator[None]:
    """Delete at the end what the follower has written."""
    try:
        with patch.object(programs, "start", start_forked):
            yield
    finally:
        reset_client()
        shutil.rmtree(folder(), ignore_errors=True)
        progress.start({}, {})
        progress.end()


@contextmanager
def chroma_filled(blocker: Any) -> Iterator[None]:
    """Have Chroma follow once, for the tests of a module. Those that use it set `chroma`.

    blocker: the fixture `django_db_blocker`
    """
    on = replace(settings.CONFIG, chroma="follow")
    with chroma_deleted():
        with blocker.unblock(), override_settings(CONFIG=on):
            follow()
        yield


@pytest.fixture
def fill_chroma(configure: Callable[..., Any]) -> Iterator[Callable[[], None]]:
    """fill_chroma() brings Chroma in line with what is published."""
    configure(chroma="follow")
    with chroma_deleted():
        yield follow


@contextmanager
def server_client(url: str) -> Iterator[Any]:
    """A client of a Chroma server, in this process."""
    client = chroma.open_server(url)
    try:
        yield client
    finally:
        # Chroma leaves them open.
        client._server._session.close()
        client._admin_client._server._session.close()
        client.close()
