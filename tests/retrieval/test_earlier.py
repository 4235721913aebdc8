"""Roots that an earlier version of codeinfo ingested answer from what Chroma has of them."""

from hashlib import sha256
from uuid import uuid4

import pytest

from tests.retrieval.conftest import Ask, Shelf

pytestmark = pytest.mark.django_db


def test_a_chunk_of_an_earlier_version_is_returned_from_its_metadata(
    shelf: Shelf, ask: Ask
) -> None:
    shelf.put_earlier(
        0.5, "a.py", "x = 1", startLine=7, endLine=7, symbol="A.b", language="python",
        chunkHash="hash",
    )  # fmt: skip
    [result] = ask()["results"]
    assert (result["relPath"], result["chunk"], result["score"]) == ("a.py", "x = 1", 0.5)
    assert (result["startLine"], result["endLine"], result["symbol"]) == (7, 7, "A.b")
    assert result["language"] == "python"
    assert result["chunkId"] == sha256(b"a.py0x = 1").hexdigest()


def test_a_row_of_no_file_is_dropped(shelf: Shelf, ask: Ask) -> None:
    """Its file was deleted, or has fewer chunks."""
    file = shelf.file("a.py")
    shelf.put(0.2, file=file, text="whole")
    shelf.rows[shelf.root().id] += [(f"{file.id}:1", 0.1), (f"{uuid4()}:0", 0.1), ("any", 0.1)]
    assert [result["chunk"] for result in ask()["results"]] == ["whole"]
