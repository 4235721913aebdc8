"""Ingests are real here: real files, the built-in embedder, the embedded store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.ingest import sweep
from tests.support.ingested import SAMPLE, write_files


@pytest.fixture
def repo(folder: Path) -> Path:
    """The sample repository on disk, not ingested yet."""
    return write_files(folder / "lighthouse", SAMPLE)


@pytest.fixture
def clean_store() -> Iterator[None]:
    """Nothing of this test stays in the store."""
    yield
