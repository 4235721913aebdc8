"""Fixtures of the log tests: a store with a separate file replaces the process's."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from apps.logs import store as store_module
from apps.logs.files import LogFile
from apps.logs.store import LogStore, StoreHandler

MakeStore = Callable[..., LogStore]


@pytest.fixture
def make_store(tmp_path: Path) -> Iterator[MakeStore]:
    """Create stores on the same file, as a restarted process does."""
    made: list[LogStore] = []

    def make(max_entries: int = 5_000, **options: Any) -> LogStore:
        path = options.pop("path", tmp_path / "logs" / "server.log")
        config = replace(settings.CONFIG, log_file_path=path)
        made.append(LogStore(LogFile(config), max_entries, **options))
        return made[-1]

    yield make
    for each in made:
        each.file.close()


@pytest.fixture
def store(make_store: MakeStore, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """The store of the API and the page, with only the entries of the test."""
    made = make_store()
    monkeypatch.setattr(store_module, "process_store", made)
    return made


@pytest.fixture
def logged(store: LogStore) -> Iterator[LogStore]:
    """`store`, which also receives this process's log."""
    handler = StoreHandler(store)
    logging.getLogger().addHandler(handler)
    yield store
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def handler(store: LogStore) -> StoreHandler:
    """A handler that adds records to `store`."""
    return StoreHandler(store)
