"""An embedded Chroma in the data folder of this process, for tests of mode `vector`."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from apps.index.vectors.follower import follow
from apps.index.vectors.following import progress
from apps.index.vectors.store import folder, reset_client


@contextmanager
def chroma_deleted() -> Iterator[None]:
    """Delete at the end what the follower has written."""
    try:
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
