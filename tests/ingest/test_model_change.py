"""Another embedding model for the whole index: asked for, or needed since the old one is gone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index.models import IndexLock, IngestRun, Root
from apps.ingest.runs import queue
from tests.ingest.test_start import post
from tests.stand_ins.embeddings_server import DIMENSION, EmbeddingsServer
from tests.support.ingested import run_ingest

pytestmark = [pytest.mark.django_db, pytest.mark.door]

OTHER = "openai:text-embedding-small"
OLD = "static-code-1"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def server(configure: Callable[..., None]) -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        configure(embedding_base_url=running.url)
        yield running


@pytest.fixture
def root(repo: Path, store: Any) -> Root:
    """The sample repository, ingested with the built-in model."""
    assert run_ingest(repo).state == "completed"
    return Root.objects.get()


def made_by_another_version(root: Root) -> None:
    Root.objects.filter(id=root.id).update(model=OLD)
    IndexLock.objects.update(model=OLD, dimension=64)


def search(client: Client, **parameters: str) -> tuple[int, dict[str, Any]]:
    return post(client, "/tools/vector-search", {"query": "seconds to wait", **parameters})


def test_every_folder_is_embedded_again_with_the_new_model(
    client: Client, root: Root, server: EmbeddingsServer
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


def test_a_folder_cannot_be_searched_until_it_is_embedded_again(
    client: Client, root: Root, server: EmbeddingsServer
) -> None:
    post(client, "/ingest/model", {"model": OTHER})
    assert search(client)[1]["results"] == []
    status, answer = search(client, repository=root.name)
    assert (status, answer["error"]) == (409, "INGEST_REQUIRED")
    assert "embedded again" in answer["message"]


def test_a_failed_run_can_be_queued_again(
    client: Client, root: Root, server: EmbeddingsServer
) -> None:
    post(client, "/ingest/model", {"model": OTHER})
    (Path(root.path) / "src").rename(Path(root.path) / "code")
    IngestRun.objects.live().update(cancel_requested=True, state="cancelled", slot=None)
    status, answer = post(client, f"/ingest/reembed/{root.path.replace('/', '%2F')}")
    assert status == 202
    queue.drain()
    run = IngestRun.objects.get(id=answer["runId"])
    assert (run.state, run.model) == ("completed", OTHER)


@pytest.mark.fault("Another embedding model")
def test_an_index_of_a_model_that_is_gone_refuses_and_says_the_way_out(
    client: Client, root: Root, repo: Path
) -> None:
    made_by_another_version(root)
    status, answer = search(client)
    assert (status, answer["error"], answer["modelId"]) == (503, "EMBED_MODEL_MISSING", OLD)
    start = {"path": str(repo), "name": "lighthouse", "model": OLD}
    for address, body in (
        ("/ingest/start", start),
        ("/ingest/start", start | {"model": DEFAULT_MODEL}),
        (f"/ingest/reembed/{root.path.replace('/', '%2F')}", None),
    ):
        status, answer = post(client, address, body)
        assert (status, answer["code"], answer["lockedModelId"]) == (409, "MODEL_LOCKED", OLD)
        assert f"Embed all folders again with {DEFAULT_MODEL}" in answer["message"]


@pytest.mark.fault("Another embedding model")
def test_the_page_offers_to_embed_all_again(client: Client, root: Root) -> None:
    made_by_another_version(root)
    html = client.get("/ingest").content.decode()
    assert f'made with <span class="mono">{OLD}</span>, which this version no longer has' in html
    answer = client.post("/ui/ingest/model", {"model": DEFAULT_MODEL}, headers=HTMX)
    assert answer.status_code == 200
    assert "1 folder is being embedded again" in json.loads(answer["HX-Trigger"])["toast"]["text"]
    queue.drain()
    html = client.get("/ingest").content.decode()
    assert "no longer has" not in html
    assert search(client)[1]["results"]


def test_the_dialog_lists_the_models(client: Client, root: Root, server: EmbeddingsServer) -> None:
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
    client: Client, root: Root, server: EmbeddingsServer
) -> None:
    server.__exit__(None, None, None)
    status, answer = post(client, "/ingest/model", {"model": OTHER})
    assert (status, answer["code"]) == (502, "EMBEDDER_UNAVAILABLE")
    assert IndexLock.objects.get().model == DEFAULT_MODEL


def test_while_a_run_is_under_way_it_is_busy(client: Client, root: Root) -> None:
    IngestRun.objects.create(
        operation="start", path="/x", name="x", model=DEFAULT_MODEL, state="embedding"
    )
    status, answer = post(client, "/ingest/model", {"model": DEFAULT_MODEL})
    assert (status, answer["code"]) == (429, "BUSY")
