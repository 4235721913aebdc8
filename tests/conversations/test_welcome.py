"""The empty chat: what it offers to ask, and the way to what can be asked about."""

import pytest
from django.test import AsyncClient

from apps.conversations.views import OWN_EXAMPLES, examples
from apps.core.config import BASE_DIR
from apps.index.models import Root
from tests.conversations.test_page import page


class TestExamples:
    """What an empty chat offers to ask: what the ingested repositories can answer."""

    def names(self, *paths: str) -> list[str]:
        return examples([Root(name=path.rpartition("/")[2], path=path) for path in paths])

    def test_none_without_a_repository(self) -> None:
        assert self.names() == []

    def test_of_the_projects_own_source_only_where_that_is_ingested(self) -> None:
        assert self.names(str(BASE_DIR)) == list(OWN_EXAMPLES)
        assert not set(OWN_EXAMPLES) & set(self.names("/src/codeinfo", "/src/httpx"))

    def test_of_other_repositories_by_their_names(self) -> None:
        questions = self.names("/src/httpx")
        assert len(questions) == 3
        assert all("httpx" in question for question in questions)
        assert "flask" in self.names("/src/httpx", "/src/flask")[1]
        assert len(self.names(*(f"/src/{n}" for n in range(9)))) == 4


@pytest.mark.door
@pytest.mark.django_db(transaction=True)
async def test_the_way_from_the_empty_chat_to_an_ingest(async_client: AsyncClient) -> None:
    html = await page(async_client, "/chat")
    assert '<form class="row row--wrap" action="/ingest">' in html
    form = await page(async_client, "/ingest?path=/src/httpx")
    assert 'name="path" value="/src/httpx"' in form
    assert 'name="name" value="httpx"' in form
