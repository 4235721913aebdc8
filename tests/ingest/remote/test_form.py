"""The form "New repository" with the URL of a repository."""

import pytest
from django.test import Client

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index.models import IngestRun, Root
from apps.ingest.runs import queue
from tests.ingest.pages import HTMX
from tests.support.git_servers import GitServer

pytestmark = pytest.mark.django_db


@pytest.mark.door
def test_the_form_takes_a_url(client: Client, server: GitServer, index: None) -> None:
    fields = {"path": f" {server.url}/harbour@side/way ", "model": DEFAULT_MODEL}
    assert client.post("/ui/ingest/start", fields, headers=HTMX).status_code == 200
    queue.drain()
    root = Root.objects.get()
    assert root.name == "harbour@side~way"
    drawer = client.get(f"/ui/ingest/root/{root.id}").content.decode()
    assert f"{server.url}/harbour@side/way" in drawer


def test_the_form_says_which_urls_can_be_used(client: Client) -> None:
    fields = {"path": "http://github.com/a/b", "model": DEFAULT_MODEL}
    answer = client.post("/ui/ingest/start", fields, headers=HTMX)
    assert answer.status_code == 422
    html = answer.content.decode()
    assert "Repositories are fetched from https://HOST/PATH" in html
    assert 'aria-describedby="path-hint path-error"' in html
    assert not IngestRun.objects.exists()
