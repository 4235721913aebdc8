"""What a conversation is limited to: by the page, by `POST /chat`, and when neither says."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import AsyncClient

from apps.conversations.models import Conversation, Turn
from apps.conversations.stream import live_runs
from apps.index.types import Area
from apps.retrieval.query import MAX_AREAS
from tests.mcp.speech import call
from tests.support.chat import ended
from tests.support.scripted import ScriptedProvider

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]

Scripted = Callable[..., ScriptedProvider]
Ask = Callable[..., Any]
SCOPE = ["flask", "click\tsrc/", "\t*.md"]
AREAS = (Area("flask"), Area("click", "src/"), Area("", "*.md"))


async def finished() -> None:
    for log in live_runs.all():
        await ended(log)


async def flags() -> Any:
    return (await Conversation.objects.aget(pk="c1")).flags


async def test_a_question_of_the_api_is_limited(scripted: Scripted, ask: Ask) -> None:
    provider = scripted()
    assert (await ask(scope=SCOPE)).status_code == 202
    await finished()
    assert provider.requests[0].areas == AREAS
    assert (
        "Here it sees only flask, click/src/, */*.md." in provider.requests[0].tools[1].description
    )
    assert await flags() == {"scope": SCOPE}


async def test_a_question_without_a_scope_keeps_that_of_the_conversation(
    async_client: AsyncClient, scripted: Scripted, ask: Ask
) -> None:
    provider = scripted()
    form = {"c": "c1", "message": "Why?", "provider": "openai", "model": "m-1"}
    await async_client.post("/ui/chat/send", {**form, "scope": SCOPE[:2]})
    await finished()
    await ask()
    await finished()
    asked = {"question": "Why?", "conversationId": "c1", "provider": "openai", "model": "m-1"}
    assert (await call("codebase_question", path="/mcp/chat", **asked)).status == 200
    await ask(scope=None)
    await finished()
    assert [request.areas for request in provider.requests] == [AREAS[:2]] * 4
    # An empty list lifts it, on the page too.
    await ask(scope=[])
    await finished()
    await ask()
    await finished()
    assert [request.areas for request in provider.requests[4:]] == [(), ()]
    assert await flags() == {"scope": []}
    html = (await async_client.get("/chat?c=c1")).content.decode()
    assert html.count('name="scope" value=""') == html.count('name="scope"') == 1


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("flask", "scope must be a list of non-empty strings"),
        ({"repository": "flask"}, "scope must be a list of non-empty strings"),
        ([["flask"]], "scope must be a list of non-empty strings"),
        (["flask", ""], "scope must be a list of non-empty strings"),
        (["flask"] * (MAX_AREAS + 1), "Choose at most 100 repositories and paths."),
        (["a" * 256], "repository must have at most 255 characters"),
        (["flask\t" + "a" * 1_001], "path must have at most 1,000 characters"),
        (["flask\t../x"], "path must not hold .."),
        (["fl\0ask"], "repository must not hold a NUL"),
        (["\t"], "an area needs a repository or a path"),
        ([" "], "repository must be a non-empty string when provided"),
    ],
)
async def test_a_scope_that_cannot_be_used_is_refused(
    async_client: AsyncClient, scripted: Scripted, ask: Ask, value: Any, problem: str
) -> None:
    scripted()
    answer = await ask(scope=value)
    assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION_FAILED")
    assert problem in answer.json()["message"]
    if isinstance(value, list) and all(isinstance(each, str) and each for each in value):
        form = {"c": "c1", "message": "Why?", "provider": "openai", "model": "m-1"}
        posted = await async_client.post("/ui/chat/send", {**form, "scope": value})
        assert (posted.status_code, posted["X-Problem"]) == (400, "VALIDATION_FAILED")
        assert problem in posted.content.decode()
    assert not await Conversation.objects.aexists()


async def test_as_many_areas_as_are_allowed_can_be_chosen(
    async_client: AsyncClient, scripted: Scripted
) -> None:
    provider = scripted()
    many = [f"flask\tsrc/{number}.py" for number in range(MAX_AREAS)]
    form = {"c": "c1", "message": "Why?", "provider": "openai", "model": "m-1", "scope": many}
    assert (await async_client.post("/ui/chat/send", form)).status_code == 200
    await finished()
    assert len(provider.requests[0].areas) == MAX_AREAS
    html = (await async_client.get("/chat?c=c1")).content.decode()
    assert html.count('name="scope" value="flask\t') == MAX_AREAS
    assert await Turn.objects.filter(repositories="\nflask\n").aexists()
