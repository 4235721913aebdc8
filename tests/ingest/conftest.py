"""Ingests are real here: real files, the built-in embedder, the embedded store."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.embedding import DEFAULT_MODEL, get_embedder
from apps.ingest.models import Root, SourceFile
from apps.ingest.vectors.store import get_store
from tests.support.ingested import SAMPLE, write_files

Contents = dict[str, str]


@pytest.fixture
def repo(folder: Path) -> Path:
    """The sample repository on disk, not ingested yet."""
    return write_files(folder / "lighthouse", SAMPLE)


@pytest.fixture
def store() -> Iterator[Any]:
    """The real store; what the test's roots left in it is dropped afterwards."""
    yield get_store()
    # The test may have closed the one it was given.
    for root_id in get_store().collections():
        get_store().drop(root_id)


@pytest.fixture
def contents(store: Any) -> Callable[[Root], Contents]:
    """What a root answers with: `relPath:index` → chunk hash, of the chunks whose file is live.

    Two ingests of the same files have the same contents; ids differ by the run.
    """

    def read(root: Root) -> Contents:
        live = {str(key) for key in SourceFile.objects.live().values_list("id", flat=True)}
        return {
            f"{match.metadata['relPath']}:{match.metadata['chunkIndex']}": str(
                match.metadata["chunkHash"]
            )
            for match in everything(root)
            if match.metadata["sourceFile"] in live
        }

    return read


def everything(root: Root) -> list[Any]:
    """Every match in the store, live or not."""
    question = get_embedder(DEFAULT_MODEL).embed_query("anything")
    return get_store().query(root.id, question, get_store().count(root.id))
