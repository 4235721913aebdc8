"""Another embedding model for the whole index."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index.models import IndexLock, IngestRun, Root
from apps.ingest.runs import queue
from tests.ingest.embeddings import OTHER
from tests.ingest.pages import HTMX
from tests.ingest.requests import post
from tests.stand_ins.embeddings_server import DIMENSION, EmbeddingsServer, SmallServer
from tests.support.ingested import run_ingest

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def root(repo: Path, index: None) -> Root:
    """The sample repository, ingested with the built-in model."""
    assert run_ingest(repo).state == "completed"
    return Root.objects.get()


def search(client: Client, **parameters: str) -> tuple[int, dict[str, Any]]:
    return post(client, "/tools/vector-search", {"query": "seconds to wait", **parameters})


def test_every_folder_is_embedded_again_with_the_new_model(
    client: Client, root: Root, embeddings: EmbeddingsServer
) -> None:
    status, answer = post(client, "/ingest/model", {"model": "text-embedding-small"})
    assert (status, len(answer["runIds"])) == (202, 1)
    lock = IndexLock.objects.get()
    assert (lock.model, lock.dimension) == (OTHER, DIMENSION)
    queue.drain()
    assert IngestRun.objects.get(id=answer["runIds"][0]).state == "completed"
    root.refresh_from_db()
    assert (root.model, root.generation) == (OTHER, 2)
    status, found = search(client)
    assert (status, found["modelId"]) == (200, OTHER)
    assert {match["modelId"] for match in found["results"]} == {OTHER}


def test_the_run_says_how_many_texts_a_small_server_made_it_cut(
    client: Client, repo: Path, index: None, configure: Callable[..., None]
) -> None:
    (repo / "long.py").write_text("def area():\n" + "    a = b + c\n" * 60)
    with SmallServer(most=4, longest=400) as server:
        configure(embedding_base_url=server.url, embedding_cache_mb=1)
        first = run_ingest(repo, model=OTHER)
        assert first.state == "completed", first.last_error
        count = re.fullmatch(
            r"Completed; (\d+) texts? w\w+ cut to the context of .*", first.message
        )
        assert count and int(count[1]) >= 1
        assert first.embedded == first.chunks
        status = client.get(f"/ingest/status/{first.id}").json()
        assert status["message"] == first.message
        # A part's vector is not kept for the whole text.
        server.longest = 9_000
        Root.objects.get().delete()
        IngestRun.objects.all().delete()
        assert run_ingest(repo, model=OTHER).message == "Completed"


def test_a_folder_cannot_be_searched_until_it_is_embedded_again(
    client: Client, root: Root, embeddings: EmbeddingsServer
) -> None:
    post(client, "/ingest/model", {"model": OTHER})
    assert search(client)[1]["results"] == []
    status, answer = search(client, repository=root.name)
    assert (status, answer["error"]) == (409, "INGEST_REQUIRED")
    assert "embedded again" in answer["message"]


def test_a_failed_run_can_be_queued_again(
    client: Client, root: Root, embeddings: EmbeddingsServer
) -> None:
    post(client, "/ingest/model", {"model": OTHER})
    (Path(root.path) / "src").rename(Path(root.path) / "code")
    IngestRun.objects.live().update(cancel_requested=True, state="cancelled", slot=None)
    status, answer = post(client, f"/ingest/reembed/{root.path.replace('/', '%2F')}")
    assert status == 202
    queue.drain()
    run = IngestRun.objects.get(id=answer["runId"])
    assert (run.state, run.model) == ("completed", OTHER)


def test_the_dialog_lists_the_models(
    client: Client, root: Root, embeddings: EmbeddingsServer
) -> None:
    html = client.get("/ui/ingest/model", headers=HTMX).content.decode()
    assert f'<option value="{DEFAULT_MODEL}" selected>' in html
    assert f'<option value="{OTHER}"' in html


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "VALIDATION"),
        ({"model": 5}, 400, "VALIDATION"),
        ({"model": "nowhere"}, 400, "VALIDATION"),
        ([], 400, "VALIDATION"),
    ],
)
def test_an_unknown_model_changes_nothing(
    client: Client, root: Root, body: Any, status: int, code: str
) -> None:
    got, answer = post(client, "/ingest/model", body)
    assert (got, answer["code"]) == (status, code)
    assert IndexLock.objects.get().model == DEFAULT_MODEL
    assert not IngestRun.objects.live().exists()


def test_a_server_that_is_away_changes_nothing(
    client: Client, root: Root, embeddings: EmbeddingsServer
) -> None:
    embeddings.__exit__(None, None, None)
    status, answer = post(client, "/ingest/model", {"model": OTHER})
    assert (status, answer["code"]) == (502, "EMBEDDER_UNAVAILABLE")
    assert IndexLock.objects.get().model == DEFAULT_MODEL


def test_while_a_run_is_under_way_it_is_busy(client: Client, root: Root) -> None:
    IngestRun.objects.create(
        operation="start", path="/x", name="x", model=DEFAULT_MODEL, state="embedding"
    )
    status, answer = post(client, "/ingest/model", {"model": DEFAULT_MODEL})
    assert (status, answer["code"]) == (429, "BUSY")
