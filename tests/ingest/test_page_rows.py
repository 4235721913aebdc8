"""What a row of the Ingest page tells: whether it can be searched, and how far Chroma is."""

import re
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.test import Client

from apps.embedding.static import MODEL_ID
from apps.index.changes import roots_changed
from apps.index.models import IndexLock, Root
from apps.index.vectors.following import Following
from apps.ingest import panels
from apps.ingest.consumers import IngestPageConsumer
from tests.ingest.pages import make_root

pytestmark = pytest.mark.django_db

CHROMA = [
    (Following("off"), (0, 0), "Searchable", ""),
    (Following("complete", 900, 900), (90, 90), "Searchable · Chroma", "90 of 90 vectors"),
    (Following("following", 310, 900), (39, 90), "Searchable · Chroma 43 %", "39 of 90 vectors"),
    (Following("following", 400, 900), (90, 90), "Searchable · Chroma", "90 of 90 vectors"),
    (
        Following("failed", 310, 900, "The <disk> is full."),
        (39, 90),
        "Searchable · Chroma: failed",
        "The &lt;disk&gt; is full.",
    ),
]


def reached(numbers: tuple[int, int]) -> dict[UUID, tuple[int, int]]:
    """As if Chroma had as many vectors of every root."""
    return {root.store: numbers for root in Root.objects.all()}


@pytest.mark.parametrize(("whole", "of_store", "shown", "explained"), CHROMA)
def test_a_row_tells_that_it_can_be_searched_and_how_far_chroma_is(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    whole: Following,
    of_store: tuple[int, int],
    shown: str,
    explained: str,
) -> None:
    monkeypatch.setattr(panels, "following", lambda: whole)
    monkeypatch.setattr(panels, "of_stores", lambda: reached(of_store))
    IndexLock.objects.create(model=MODEL_ID, dimension=256)
    root = make_root(chunks=90, embedded=90)
    html = client.get("/ingest").content.decode()
    (facts,) = re.findall('<div class="muted nowrap">(.+?)</div>', html)
    assert re.sub("<[^>]*>", "", facts.replace('<span class="sep"', " · <span")) == shown
    assert f'title="{explained}"' in facts or not explained
    details = client.get(f"/ui/ingest/root/{root.id}").content.decode()
    assert explained in details and ("<dt>Chroma</dt>" in details) == bool(explained)


def test_a_folder_that_waits_for_another_model_or_is_damaged_is_not_called_searchable(
    client: Client,
) -> None:
    make_root()
    assert "Searchable" not in client.get("/ingest").content.decode()
    IndexLock.objects.create(model=MODEL_ID, dimension=256)
    Root.objects.update(damage="2 of 9 texts are missing")
    assert "<span>Searchable in part</span>" in client.get("/ingest").content.decode()


@pytest.mark.django_db(transaction=True)
async def test_the_socket_sends_the_rows_again_as_chroma_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(panels, "following", lambda: Following("following"))
    monkeypatch.setattr(panels, "of_stores", lambda: reached((39, 90)))
    await sync_to_async(make_root)()
    socket = WebsocketCommunicator(IngestPageConsumer.as_asgi(), "/ws/ui/ingest?view=page")
    await socket.connect()
    assert "Chroma 43 %" in await socket.receive_from()
    monkeypatch.setattr(panels, "of_stores", lambda: reached((40, 90)))
    roots_changed()
    second = await socket.receive_from()
    assert 'id="roots"' in second and "Chroma 44 %" in second and 'id="active-run"' not in second
    await socket.disconnect()
