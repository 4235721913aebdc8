"""Roots that an earlier version of codeinfo ingested answer from what Chroma has of them."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.index import stores
from apps.index.texts import get_texts
from tests.index.earlier import make_earlier
from tests.retrieval.conftest import Ask, Shelf
from tests.support.ingested import SAMPLE, ingest_sample

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


# --- over real stores -----------------------------------------------------------------------------

QUESTION = "how long to wait before trying again"


@pytest.fixture
def emptied() -> Iterator[None]:
    for root_id in stores.roots():
        stores.drop(root_id)
    yield
    for root_id in stores.roots():
        stores.drop(root_id)


def places(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The results, whatever found them."""
    return [
        {key: value for key, value in result.items() if key not in ("matchedBy", "score")}
        for result in answer["results"]
    ]


@pytest.mark.door
def test_a_root_answers_as_before_until_it_is_ingested_again(
    transactional_db: None, emptied: None, folder: Path, ask: Ask, configure: Callable[..., None]
) -> None:
    configure(retrieval_cutoff_disabled=True, retrieval_mode="vector")
    root = ingest_sample(folder)
    by_vectors = ask(query=QUESTION, limit=20)
    make_earlier(root)
    found = ask(query=QUESTION, limit=20)
    assert places(found) == places(by_vectors)
    assert [result["score"] for result in found["results"]] == pytest.approx(
        [result["score"] for result in by_vectors["results"]], abs=1e-5
    )
    configure(retrieval_mode="hybrid", retrieval_cutoff_disabled=True)
    found = ask(query=QUESTION, limit=20)
    assert found["degraded"] == "vectors only: the words of lighthouse are being rebuilt"
    by_key = sorted(places(found), key=lambda result: result["chunkId"])
    assert by_key == sorted(places(by_vectors), key=lambda result: result["chunkId"])
    assert [each["relPath"] for each in ask(query=QUESTION, path="src/")["results"]] == [
        path for path in (each["relPath"] for each in found["results"]) if path.startswith("src/")
    ]


@pytest.mark.door
@pytest.mark.parametrize("earlier", [True, False], ids=["earlier", "now"])
def test_a_deleted_file_is_shown_as_it_was_ingested(
    transactional_db: None, emptied: None, folder: Path, client: Client, earlier: bool
) -> None:
    root = ingest_sample(folder)
    if earlier:
        make_earlier(root)
        assert get_texts().read([sha256(SAMPLE["src/retry.py"].encode()).hexdigest()]) == {}
    (folder / "src/retry.py").unlink()
    query = {"repo": "lighthouse", "path": "src/retry.py", "start": 11, "end": 12}
    page = client.get("/ui/retrieval/source", query, follow=True).content.decode()
    assert "This is the text as it was ingested." in page
    assert "RetryPolicy" in page
