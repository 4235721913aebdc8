"""The empty chat: the folders that may be ingested, questions to begin with, and Home's field."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client

from apps.conversations import welcome
from apps.conversations.examples import OWN_EXAMPLES
from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import live_runs
from apps.core.config import BASE_DIR
from apps.index.models import Root
from tests.conversations.pages import page
from tests.support.chat import ended

pytestmark = [pytest.mark.door, pytest.mark.django_db(transaction=True)]

Configure = Callable[..., None]


def published(path: str, **fields: Any) -> Root:
    return Root.objects.create(
        path=path, name=path.rpartition("/")[2], model="m", generation=1, **fields
    )


def texts(root: Root) -> list[str]:
    return [example.text for example in welcome.examples(root)]


class TestExamples:
    """What an empty chat offers to ask: what the ingested repositories can answer."""

    def test_of_the_projects_own_source_only_where_that_is_ingested(self) -> None:
        assert texts(published(str(BASE_DIR))) == list(OWN_EXAMPLES)
        assert not set(OWN_EXAMPLES) & set(texts(published("/src/codeinfo")))

    def test_code_spans_are_markup_and_all_else_is_escaped(self) -> None:
        example = welcome.Example("What is `<b>` & <i>?", "r")
        assert example.html == (
            "<span>What is </span><code>&lt;b&gt;</code><span> &amp; &lt;i&gt;?</span>"
        )

    def test_each_is_a_button_that_asks_one_repository(self, client: Client) -> None:
        root = published("/src/<b>")
        html = client.get(f"/ui/chat/questions?root={root.id}").content.decode()
        assert html.count("data-example=") == 4
        assert html.count('data-repository="&lt;b&gt;"') == 4
        assert "Ask about &lt;b&gt;" in html

    def test_an_unknown_repository_is_not_found(self, client: Client) -> None:
        assert client.get("/ui/chat/questions?root=hal").status_code == 404


class TestFirstUse:
    """Until a folder is ingested that somebody has chosen, the page lists what can be."""

    async def html(self, client: AsyncClient, query: str = "") -> str:
        return await page(client, f"/chat{query}")

    async def test_the_list_is_offered_while_only_the_first_root_is_ingested(
        self, async_client: AsyncClient, configure: Configure
    ) -> None:
        configure(first_root=str(BASE_DIR))
        assert 'hx-get="/ui/ingest/nearby"' in await self.html(async_client)
        own = await sync_to_async(published)(str(BASE_DIR))
        html = await self.html(async_client)
        assert 'hx-get="/ui/ingest/nearby"' in html
        assert f"/ui/chat/questions?root={own.id}&amp;heading=Or%20try%20it%20on" in html
        assert "/ws/ui/ingest?view=chat" in html
        chosen = await sync_to_async(published)("/src/flask")
        html = await self.html(async_client)
        assert "/ui/ingest/nearby" not in html
        assert f"/ui/chat/questions?root={chosen.id}" in html
        assert "/ws/ui/ingest?view=foot" in html

    async def test_each_repository_is_asked_about(
        self, async_client: AsyncClient, configure: Configure
    ) -> None:
        configure(first_root="none")
        roots = [await sync_to_async(published)(f"/src/{name}") for name in ("flask", "gin")]
        html = await self.html(async_client)
        for root in roots:
            assert f"/ui/chat/questions?root={root.id}&amp;" in html
        few = await async_client.get(f"/ui/chat/questions?root={roots[0].id}&few=1")
        assert few.content.decode().count("data-example=") == 2

    async def test_the_address_names_what_is_asked_about(self, async_client: AsyncClient) -> None:
        flask = await sync_to_async(published)("/src/flask")
        await sync_to_async(published)("/src/gin")
        html = await self.html(async_client, "?repo=flask")
        assert f"/ui/chat/questions?root={flask.id}" in html
        assert 'name="scope" value="flask"' in html


async def test_the_way_from_the_empty_chat_to_an_ingest(async_client: AsyncClient) -> None:
    html = await page(async_client, "/chat")
    assert '<form class="row row--wrap" action="/ingest">' in html
    form = await page(async_client, "/ingest?path=/src/httpx")
    assert 'name="path" value="/src/httpx"' in form
    assert 'name="name" value="httpx"' in form


@pytest.mark.usefixtures("nothing_left_running")
class TestAsk:
    """Home's field starts a conversation."""

    async def test_it_leads_to_the_answer(self, async_client: AsyncClient) -> None:
        response = await async_client.post("/ui/chat/ask", {"q": "Where is it?"})
        assert response.status_code == 302
        match = re.fullmatch(r"/chat\?c=([\w-]+)", response["Location"])
        assert match is not None
        log = live_runs.of(match[1])
        if log is not None:
            await ended(log)
        conversation = await Conversation.objects.aget(pk=match[1])
        assert conversation.title == "Where is it?"
        assert await Turn.objects.filter(conversation=conversation).acount() == 2

    async def test_what_cannot_be_asked_is_kept(
        self, async_client: AsyncClient, configure: Configure
    ) -> None:
        configure(chat_provider="openai")
        response = await async_client.post("/ui/chat/ask", {"q": "Where <is> it?"})
        html = response.content.decode()
        assert response.status_code == 503
        assert "Where &lt;is&gt; it?</textarea>" in html
        assert "The question is kept." in html
        assert "Providers page" in unescape(html)
        assert not await Conversation.objects.aexists()

    async def test_a_blank_question_is_refused(self, async_client: AsyncClient) -> None:
        response = await async_client.post("/ui/chat/ask", {"q": "  "})
        assert response.status_code == 400
        assert b"message is required" in response.content

    def test_a_foreign_page_cannot_ask(self, tmp_path: Path) -> None:
        strict = Client(enforce_csrf_checks=True)
        assert strict.post("/ui/chat/ask", {"q": "x"}).status_code == 403
        assert strict.get("/ui/chat/ask").status_code == 405
