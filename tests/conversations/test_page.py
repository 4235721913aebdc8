"""The chat page over HTTP: what it shows, what its forms do, and how they refuse."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import AsyncClient, Client

from apps.agents.events import TextDelta
from apps.agents.providers.base import Availability
from apps.agents.providers.builtin import ADVICE, NO_MODEL
from apps.conversations import runner
from apps.conversations.models import Conversation, now_ms
from apps.conversations.stream import live_runs
from tests.conversations.pages import answered, page, visible
from tests.support.chat import answers, conversation, ended, question, reached
from tests.support.scripted import Gate, ScriptedProvider

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]

Scripted = Callable[..., ScriptedProvider]
FORMS = (
    *("send", "stop", "archive", "restore", "pin", "rename", "delete", "diagram"),
    *("share", "revoke"),
)
SEARCH: dict[str, Any] = {
    "type": "tool",
    "callId": "1",
    "name": "VectorSearch",
    "parameters": {"query": "timeouts", "limit": 5},
    "stage": "success",
    "result": {
        "results": [
            {
                "repo": "httpx",
                "relPath": "httpx/_client.py",
                "chunk": "def build():\n    return 5",
                "startLine": 371,
                "endLine": 372,
                "score": 0.53219,
                "language": "python",
            },
            {"repo": "httpx", "relPath": "README.md", "chunk": "Words", "score": None},
        ]
    },
    "error": None,
    "seconds": 0.18,
}


class Attributes(HTMLParser):
    """The names of all attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {name for name, _ in attrs}


async def send(client: AsyncClient, **changes: Any) -> Any:
    form = {"c": "c1", "message": "Why?", "provider": "openai", "model": "m-1"}
    return await client.post("/ui/chat/send", form | changes)


# What it shows


@pytest.mark.door
async def test_a_new_conversation_teaches_and_has_an_id_that_is_ready(
    async_client: AsyncClient,
) -> None:
    html = await page(async_client, "/chat")
    assert "Ask your code. Get the lines." in html
    assert "No conversations yet. Start a chat to see history here." in html
    assert "Ingest a repository to ask about it" in html
    found = re.search(r'ws-connect="/ws/ui/chat/([\w-]{36})"', html)
    assert found and f'name="c" value="{found[1]}"' in html
    assert not await Conversation.objects.aexists()


async def test_an_answer_is_shown_with_its_steps_citations_and_figures(
    async_client: AsyncClient,
) -> None:
    await answered(
        {"type": "reasoning", "text": "I look **there**.", "seconds": 2.1},
        SEARCH,
        {"type": "text", "text": "The request wins (`httpx/httpx/_client.py:371-372`)."},
        usage={"inputTokens": 6214, "outputTokens": 412, "totalTokens": 6626},
        timing={"totalTimeSec": 9.84, "tokensPerSecond": 42},
    )
    html = await page(async_client)
    text = visible(html)
    for expected in (
        "Complete",
        "Thought process 2.1 s",
        "I look there .",
        "VectorSearch Success 2 matches 0.18 s",
        "Distance: 0.532",
        "Best distance: 0.532",
        "The request wins 1 .",
        "Citations (2)",
        "Tokens: in 6,214 · out 412 · total 6,626",
        "Time: 9.84s · Rate: 42 tok/s",
    ):
        assert expected in text
    assert "&lt;b&gt;timeout&lt;/b&gt;" in html
    assert 'class="tmatch__d">—<' in html
    assert "&quot;query&quot;: &quot;timeouts&quot;" in html


@pytest.mark.parametrize(
    ("status", "chip"), [("ok", "Complete"), ("stopped", "Stopped"), ("failed", "Failed")]
)
async def test_every_end_has_its_chip(async_client: AsyncClient, status: str, chip: str) -> None:
    error = {"code": "PROVIDER_ERROR", "message": "The server went away."}
    await answered(
        {"type": "text", "text": "Half an"},
        status=status,
        error=error if status == "failed" else None,
    )
    html = await page(async_client)
    assert re.findall(r"data-chip>.*?</svg>(\w+)<", html) == [chip]
    assert "Half an" in html
    assert ("The server went away." in html) == (status == "failed")
    assert ("Generation stopped." in html) == (status == "stopped")


async def test_a_failed_tool_says_its_code_and_the_way_on(async_client: AsyncClient) -> None:
    failed = SEARCH | {
        "stage": "error",
        "result": None,
        "error": {"code": "INGEST_REQUIRED", "message": "Nothing is ingested."},
    }
    await answered(failed)
    html = await page(async_client)
    assert "INGEST_REQUIRED: Nothing is ingested." in html
    assert '<a href="/ingest">Ingest a repository</a>' in html


async def test_an_unknown_conversation_is_an_empty_one(async_client: AsyncClient) -> None:
    html = await page(async_client, "/chat?c=never-seen")
    assert 'name="c" value="never-seen"' in html
    assert "Ask your code." in html


@pytest.mark.parametrize("bad", ["../etc", "a b", "x" * 129, "<script>"])
async def test_an_id_that_cannot_be_one_is_replaced(async_client: AsyncClient, bad: str) -> None:
    html = await page(async_client, f"/chat?c={bad}")
    assert re.search(r'name="c" value="[0-9a-f-]{36}"', html)


async def test_hostile_text_is_shown_and_does_nothing(async_client: AsyncClient) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    path = '"><script>alert(1)</script>.py'
    row = SEARCH["result"]["results"][0] | {"relPath": path, "repo": evil, "chunk": evil}
    await conversation(title=evil)
    await answered(
        {"type": "reasoning", "text": evil, "seconds": None},
        SEARCH
        | {"name": evil, "parameters": {"query": evil, "x": evil}, "result": {"results": [row]}},
        SEARCH | {"result": {"repos": [{"id": evil, "description": evil, "hostPath": evil}]}},
        SEARCH | {"result": evil},
        {"type": "text", "text": evil},
        model=evil,
        status="failed",
        error={"code": evil, "message": evil},
    )
    html = await page(async_client)
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    attributes = Attributes()
    attributes.feed(html)
    assert not [name for name in attributes.names if name == "style" or name.startswith("on")]


async def test_long_conversations_show_the_latest_and_a_way_to_the_rest(
    async_client: AsyncClient,
) -> None:
    for number in range(63):
        await answered({"type": "text", "text": f"Answer number {number}."})
    html = await page(async_client)
    assert "Show 3 earlier questions" in html
    assert "Answer number 2." not in html and "Answer number 3." in html
    assert "Answer number 0." in await page(async_client, "/chat?c=c1&all=1")


# Providers


async def test_what_is_not_connected_is_one_line_with_a_way_to_connect_it(
    async_client: AsyncClient, scripted: Scripted
) -> None:
    provider = scripted()
    provider.offered = Availability(available=False, reason="Nothing answers at port 9.")
    html = await page(async_client, "/chat")
    assert re.search(
        r'<option value="openai" disabled title="[^"]+">Scripted \(unavailable\)</option>', html
    )
    line = re.search(r'<span class="picker__reason"[^>]*>(.*?)</span> *</span>', html, re.S)
    assert line is not None
    text = " ".join(re.sub("<[^>]+>", " ", line[1]).split())
    assert re.fullmatch(r"(.+ and )?\S.+ not connected\. How to connect", text)
    assert "Scripted" in text
    assert "CODEINFO_" not in text
    assert 'href="/providers">How to connect' in line[1]
    assert '<option value="builtin" selected>' in html


async def test_the_provider_stays_within_a_conversation(
    async_client: AsyncClient, scripted: Scripted
) -> None:
    scripted()
    await answered({"type": "text", "text": "Yes."})
    html = await page(async_client)
    assert re.search(r'<select[^>]*id="provider"[^>]*disabled', html)
    assert '<input type="hidden" name="provider" value="openai">' in html


async def test_models_follow_the_provider(async_client: AsyncClient, scripted: Scripted) -> None:
    scripted()
    for provider, model in (("openai", "m-1"), ("builtin", "search")):
        response = await async_client.get(f"/ui/chat/picker?c=new&provider={provider}")
        assert f'<option value="{model}" selected>' in response.content.decode()


# Asking


async def test_asking_starts_a_run_and_moves_the_page_to_it(
    async_client: AsyncClient, scripted: Scripted
) -> None:
    gate = Gate()
    scripted([TextDelta("Be"), gate, TextDelta("cause.")])
    response = await send(async_client)
    assert response.status_code == 200
    assert response.headers["HX-Push-Url"] == "/chat?c=c1"
    log = live_runs.of("c1")
    assert log is not None
    assert json.loads(response.headers["HX-Trigger"]) == {"chat:sent": {"turn": log.turn_id}}
    assert 'id="picker"' in response.content.decode()
    # Whether it still runs is for the socket to say: this answer may come after its end.
    assert "data-stop" not in response.content.decode()
    await reached(gate.reached)
    html = await page(async_client)
    assert "Processing" in html and 'aria-busy="true"' in html and "data-stop" in html
    gate.open.set()
    await ended(log)
    assert [turn.status for turn in await answers()] == ["ok"]


async def test_the_scope_of_a_question_is_kept(
    async_client: AsyncClient, scripted: Scripted
) -> None:
    provider = scripted()
    await send(async_client, scope=["httpx"])
    log = live_runs.of("c1")
    if log is not None:
        await ended(log)
    stored = await Conversation.objects.aget(pk="c1")
    assert stored.flags == {"scope": ["httpx"]}
    assert any("'httpx'" in tool.description for tool in provider.requests[0].tools)


async def test_stop_ends_the_run_as_stopped(async_client: AsyncClient, scripted: Scripted) -> None:
    gate = Gate()
    scripted([TextDelta("Half"), gate])
    await send(async_client)
    log = live_runs.of("c1")
    assert log is not None
    await reached(gate.reached)
    response = await async_client.post("/ui/chat/stop", {"c": "c1"})
    assert response.status_code == 204
    assert response.headers["HX-Trigger"] == "chat:stopped"
    await ended(log)
    assert [turn.status for turn in await answers()] == ["stopped"]


@pytest.mark.parametrize(
    ("changes", "code", "status"),
    [
        ({"message": "  \n"}, "VALIDATION_FAILED", 400),
        ({"model": ""}, "VALIDATION_FAILED", 400),
        ({"c": "../x"}, "VALIDATION_FAILED", 400),
        ({"c": ""}, "VALIDATION_FAILED", 400),
        ({"provider": "nobody"}, "UNSUPPORTED_PROVIDER", 400),
    ],
)
async def test_a_question_that_cannot_be_asked_is_refused_in_place(
    async_client: AsyncClient,
    scripted: Scripted,
    changes: dict[str, str],
    code: str,
    status: int,
) -> None:
    scripted()
    response = await send(async_client, **changes)
    assert (response.status_code, response.headers["X-Problem"]) == (status, code)
    assert code in response.content.decode()
    assert not await Conversation.objects.aexists()


async def test_refusals_of_the_moment_are_said_in_place_too(
    async_client: AsyncClient, scripted: Scripted
) -> None:
    gate = Gate()
    provider = scripted([gate])
    log = await runner.start(question())
    assert (await send(async_client)).headers["X-Problem"] == "RUN_IN_PROGRESS"
    await runner.cancel("c1")
    await ended(log)
    await async_client.post("/ui/chat/archive", {"c": "c1"})
    assert (await send(async_client)).status_code == 410
    provider.offered = Availability(available=False, reason="Away.")
    refused = await send(async_client, c="c2")
    assert (refused.status_code, refused.headers["X-Problem"]) == (503, "PROVIDER_UNAVAILABLE")
    assert "Away." in refused.content.decode()


def test_forms_need_the_pages_token() -> None:
    client = Client(enforce_csrf_checks=True)
    for verb in FORMS:
        assert client.post(f"/ui/chat/{verb}", {"c": "c1"}).status_code == 403


def test_forms_are_posts_and_fragments_are_gets(client: Client) -> None:
    for verb in FORMS:
        assert client.get(f"/ui/chat/{verb}").status_code == 405
    for name in ("picker", "sidebar", "actions", "export", "shares"):
        assert client.post(f"/ui/chat/{name}").status_code == 405


# The list of conversations


async def test_the_list_is_newest_first_searched_filtered_and_paged(
    async_client: AsyncClient,
) -> None:
    for number in range(25):
        await conversation(id=f"n{number}", title=f"Question {number:02}")
    await async_client.post("/ui/chat/archive", {"c": "n24"})

    async def titles(query: str) -> list[str]:
        html = (await async_client.get(f"/ui/chat/sidebar?{query}")).content.decode()
        html = re.sub("</?mark>", "", html)
        return re.findall(r'truncate grow">(Question \d+)<', html)

    first = await titles("")
    assert len(first) == 20 and first[0] == "Question 23"
    assert len(await titles("n=40")) == 24
    assert await titles("q=question%2007") == ["Question 07"]
    assert await titles("state=archived") == ["Question 24"]
    assert len(await titles("state=all&n=40")) == 25
    assert len(await titles("state=nonsense&n=x")) == 20
    assert await titles("q=%25") == []


async def test_the_title_of_the_open_conversation_comes_with_the_list(
    async_client: AsyncClient,
) -> None:
    async def listed(current: str) -> str:
        return (await async_client.get(f"/ui/chat/sidebar?c={current}")).content.decode()

    await conversation(id="n1", title="Which <timeout> wins?")
    title = '<h1 class="topbar__title truncate" id="chat-title" hx-swap-oob="true">'
    assert f"{title}Which &lt;timeout&gt; wins?</h1>" in await listed("n1")
    assert "chat-title" not in await listed("none-yet")


async def test_a_running_conversation_and_its_source_are_marked(
    async_client: AsyncClient, scripted: Scripted
) -> None:
    gate = Gate()
    scripted([gate])
    log = await runner.start(question(source="MCP"))
    html = (await async_client.get("/ui/chat/sidebar?c=c1")).content.decode()
    assert 'aria-label="Running"' in html
    assert '<span class="tag">MCP</span>' in html
    assert 'aria-current="page"' in html
    await runner.cancel("c1")
    await ended(log)


@pytest.mark.door
async def test_rename_archive_restore_and_delete(async_client: AsyncClient) -> None:
    await answered({"type": "text", "text": "Yes."})
    await async_client.post("/ui/chat/rename", {"c": "c1", "title": " New name "})
    assert (await Conversation.objects.aget(pk="c1")).title == "New name"
    refused = await async_client.post("/ui/chat/delete", {"c": "c1"})
    assert (refused.status_code, refused.json()["code"]) == (409, "BATCH_CONFLICT")
    archived = await async_client.post("/ui/chat/archive", {"c": "c1"})
    assert json.loads(archived.headers["HX-Trigger"])["toast"]["text"] == "Conversation archived"
    assert "This conversation is archived." in await page(async_client)
    restored = await async_client.post("/ui/chat/restore", {"c": "c1"})
    assert json.loads(restored.headers["HX-Trigger"])["toast"]["text"] == "Conversation restored"
    await async_client.post("/ui/chat/archive", {"c": "c1"})
    await async_client.post("/ui/chat/delete", {"c": "c1"})
    assert not await Conversation.objects.aexists()


@pytest.mark.parametrize("verb", ["archive", "restore", "rename"])
async def test_an_unknown_conversation_is_404(async_client: AsyncClient, verb: str) -> None:
    response = await async_client.post(f"/ui/chat/{verb}", {"c": "nope", "title": "x"})
    assert response.status_code == 404
    assert (await async_client.get("/ui/chat/actions?c=nope")).status_code == 404
    assert (await async_client.get("/ui/chat/export?c=nope")).status_code == 404


# Export


async def test_a_conversation_is_exported_with_its_citations(async_client: AsyncClient) -> None:
    await answered(SEARCH, {"type": "text", "text": "So `httpx/httpx/_client.py:371-372`."})
    markdown = await async_client.get("/ui/chat/export?c=c1&format=md")
    assert markdown.headers["Content-Disposition"] == 'attachment; filename="Which-timeout-wins.md"'
    text = markdown.content.decode()
    assert "## Which <b>timeout</b> wins?" in text
    assert "1. `httpx/httpx/_client.py:371-372`" in text
    data = (await async_client.get("/ui/chat/export?c=c1&format=json")).json()
    assert data["turns"][0]["answer"] == "So `httpx/httpx/_client.py:371-372`."
    assert data["turns"][0]["citations"] == [
        {"number": 1, "path": "httpx/httpx/_client.py", "start": 371, "end": 372}
    ]


async def test_a_link_to_a_deleted_conversation_says_so(async_client: AsyncClient) -> None:
    said = "This conversation no longer exists."
    await conversation(archived_at=now_ms())
    assert said not in await page(async_client)
    assert said not in await page(async_client, "/chat")
    await async_client.post("/ui/chat/delete", {"c": "c1"})
    assert said in await page(async_client)


@pytest.mark.parametrize("text", [NO_MODEL, *ADVICE.values()])
async def test_the_links_of_search_only_lead_to_pages(async_client: AsyncClient, text: str) -> None:
    await answered({"type": "text", "text": text})
    html = await page(async_client)
    assert "](" not in re.sub(r"<[^>]*>", "", html)
    for address in re.findall(r"\]\((\S+)\)", text):
        assert f'<a href="{address}">' in html
        assert (await async_client.get(address)).status_code == 200
