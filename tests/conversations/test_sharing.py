"""A link to a copy of a conversation: what it shows, to whom, for how long; and the copy as a
file."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from hashlib import sha256

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone

from apps.conversations import sharing
from apps.conversations.answers.exchange import Exchange
from apps.conversations.models import Conversation, Share, Turn
from apps.conversations.renderers import standalone
from tests.conversations.copies import HTML, Elements, cited_answer, opened, share
from tests.conversations.pages import add_turn, answered, visible
from tests.support.chat import conversation
from tests.support.entries import Entries

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

MISSING = "/shared/00000000000000000000000000000000"


async def test_a_link_shows_questions_answers_and_the_cited_lines_alone(
    async_client: AsyncClient,
) -> None:
    await cited_answer()
    html = await opened(async_client, await share(async_client))
    text = visible(html)
    for expected in (
        "Which timeout wins?",
        "Which &lt;b&gt;timeout&lt;/b&gt; wins?",
        "The request wins 1 .",
        "Citations (1)",
        "httpx/httpx/ _client.py:371–372",
        "371 def at_371 (): 372 return 371",
    ):
        assert expected in text
    assert '<span class="k">def</span>' in html and 'href="#c1-1"' in html and 'id="c1-1"' in html
    absents = ("attic", "uncited", "_secrets", "/home/ada", "secret-scope", "words of a search")
    for absent in absents:
        assert absent not in html
    links = Elements(html).values["href"]
    assert not [link for link in links if link.startswith("/") and "/static/" not in link]
    assert Elements(html).tags.isdisjoint({"script", "button", "form", "input", "textarea"})


async def test_a_shared_page_is_kept_from_caches_other_sites_and_search_engines(
    async_client: AsyncClient,
) -> None:
    await cited_answer()
    for path in (await share(async_client), MISSING):
        headers = (await async_client.get(path, headers=HTML)).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Robots-Tag"] == "noindex"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Content-Encoding" not in headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "script-src" not in headers["Content-Security-Policy"]


async def test_a_copy_stays_as_it_was_made(async_client: AsyncClient) -> None:
    await cited_answer()
    link = await share(async_client)
    before = await opened(async_client, link)
    await answered({"type": "text", "text": "A later answer."})
    await Turn.objects.filter(role="assistant").aupdate(parts=[{"type": "text", "text": "Gone."}])
    await async_client.post("/ui/chat/rename", {"c": "c1", "title": "Another title"})
    assert await opened(async_client, link) == before


async def test_the_branch_that_is_followed_is_shared(async_client: AsyncClient) -> None:
    first = await answered({"type": "text", "text": "The first answer."})
    await Conversation.objects.aupdate(head=first.parent)
    await add_turn("assistant", {"type": "text", "text": "The second answer."})
    html = await opened(async_client, await share(async_client))
    assert "The second answer." in html and "The first answer." not in html


async def test_an_answer_that_is_not_over_is_left_out(async_client: AsyncClient) -> None:
    await cited_answer()
    await answered({"type": "text", "text": "Half an"}, status="running", owner="x/1/y")
    assert "Half an" not in await opened(async_client, await share(async_client))


async def test_only_the_hash_of_a_token_is_stored_and_none_is_logged(
    async_client: AsyncClient,
) -> None:
    await cited_answer()
    with Entries() as entries:
        token = (await share(async_client)).rpartition("/")[2]
        await opened(async_client, f"/shared/{token}")
    row = await Share.objects.aget()
    assert row.token_hash == sha256(token.encode()).hexdigest()
    assert token not in str(vars(row))
    paths = [entry["context"]["path"] for entry in entries.all if "path" in entry["context"]]
    assert "/shared/[redacted]" in paths and token not in str(entries.all)


SLIPS = [
    *("shared//{}", "shared/{}/", "shared/%00{}", "shared/{}.", "shared/{upper}", "shared/{}%0a"),
    *("shared/x{}", "Shared/{}", "SHARED/{}", "shared%252F{}", "shared/{first}%20{last}"),
    *("shared/{first}{last}", "shared/{first}o{last}"),
]


@pytest.mark.parametrize("path", SLIPS)
async def test_a_link_with_a_slip_opens_nothing_and_its_token_is_not_logged(
    async_client: AsyncClient, path: str
) -> None:
    await cited_answer()
    token = (await share(async_client)).rpartition("/")[2]
    for at in (1, 15, 16, 31):
        parts = {"upper": token.upper(), "first": token[:at], "last": token[at + 1 :]}
        with Entries() as entries:
            response = await async_client.get(f"/{path.format(token, **parts)}", headers=HTML)
        assert response.status_code == 404
        logged = str(entries.all).lower()
        assert not any(token[start:][:16] in logged for start in range(17))


@pytest.mark.parametrize("path", ["/ui/chat/share", "/ui/chat/revoke"])
def test_another_site_neither_makes_a_link_nor_revokes_one(path: str) -> None:
    Conversation.objects.create(id="c1", provider="openai", model="m")
    form = {"c": "c1", "link": "0" * 64}
    browser = Client(enforce_csrf_checks=True)
    assert browser.post(path, form).status_code == 403
    assert browser.post(path, form, headers={"Host": "evil.example"}).status_code in (400, 403)


async def test_a_link_is_read_and_nothing_else(async_client: AsyncClient) -> None:
    await cited_answer()
    link = await share(async_client)
    for method in ("post", "put", "delete", "patch", "options"):
        assert (await getattr(async_client, method)(link)).status_code == 405
    head = await async_client.head(link, headers=HTML)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}]
)
async def test_a_link_has_no_address_that_another_has_chosen(
    async_client: AsyncClient, headers: dict[str, str]
) -> None:
    await cited_answer()
    made = await async_client.post("/ui/chat/share", {"c": "c1"}, headers=headers)
    assert "evil.example" not in made.content.decode()


async def test_links_that_open_nothing_look_the_same(async_client: AsyncClient) -> None:
    await cited_answer()
    revoked, expired = [await share(async_client) for _ in range(2)]
    rows = {row.token_hash: row async for row in Share.objects.all()}
    hashes = [sha256(link.rpartition("/")[2].encode()).hexdigest() for link in (revoked, expired)]
    await async_client.post("/ui/chat/revoke", {"c": "c1", "link": hashes[0]})
    await Share.objects.filter(pk=hashes[1]).aupdate(expires_at=timezone.now())
    assert set(hashes) == set(rows)
    answers = set()
    for path in (revoked, expired, MISSING, f"{expired}0", "/shared/x%00y", f"/shared/{'é' * 300}"):
        for query in ("", "?download=1"):
            response = await async_client.get(path + query, headers=HTML)
            del response.headers["X-Request-Id"]
            answers.add((response.status_code, str(response.headers), response.content))
    assert [status for status, _, _ in answers] == [404]
    assert "It is wrong, has expired or was revoked." in answers.pop()[2].decode()


async def test_expired_copies_are_deleted(async_client: AsyncClient) -> None:
    await cited_answer()
    await share(async_client)
    row = await Share.objects.aget()
    assert row.expires_at - row.created_at == timedelta(days=30)
    await Share.objects.aupdate(expires_at=timezone.now())
    await share(async_client)
    assert [one.pk async for one in Share.objects.all()] != [row.pk]
    assert await Share.objects.acount() == 1


async def test_a_deleted_conversation_takes_its_links(async_client: AsyncClient) -> None:
    await cited_answer()
    link = await share(async_client)
    await async_client.post("/ui/chat/archive", {"c": "c1"})
    assert "The request wins" in await opened(async_client, link)
    deleted = await async_client.post("/ui/chat/bulk/delete", {"id": "c1"})
    assert "Deleted 1 conversation" in deleted.headers["HX-Trigger"]
    assert (await async_client.get(link, headers=HTML)).status_code == 404


def test_a_copy_without_its_conversation_is_not_opened(client: Client) -> None:
    """A database without foreign keys stores it, if the conversation is deleted meanwhile."""
    row = Conversation.objects.create(id="c1", provider="openai", model="m")
    token, expires_at = "0" * 32, timezone.now() + timedelta(days=1)
    token_hash = sha256(token.encode()).hexdigest()
    Share.objects.create(token_hash=token_hash, conversation=row, html="x", expires_at=expires_at)
    assert client.get(f"/shared/{token}").status_code == 200
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM conversations_conversation")
    assert client.get(f"/shared/{token}").status_code == 404


async def test_the_dialog_lists_links_without_their_address(async_client: AsyncClient) -> None:
    await cited_answer()
    await conversation(id="c2", title="Another talk")
    await add_turn("user", {"type": "text", "text": "Why?"}, conversation_id="c2")
    await share(async_client, "c2")
    token = (await share(async_client)).rpartition("/")[2]
    dialog = (await async_client.get("/ui/chat/shares?c=c1")).content.decode()
    assert token not in dialog
    text = visible(dialog)
    own, others = "Links to this conversation", "Your links to other conversations"
    assert text.index(own) < text.index(others) < text.index("Another talk")
    assert dialog.count("Revoke</button>") == 2
    assert "Everyone who can reach this server" in text


@pytest.mark.parametrize(
    ("limit", "value", "code"),
    [("MAX_LINKS", 1, "TOO_MANY_LINKS"), ("MAX_BYTES", 4_000, "TOO_LONG_TO_SHARE")],
)
async def test_links_and_copies_are_bounded(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, code: str
) -> None:
    await cited_answer()
    await share(async_client)
    await answered({"type": "text", "text": "word " * 1_000})
    monkeypatch.setattr(sharing, limit, value)
    response = await async_client.post("/ui/chat/share", {"c": "c1"})
    assert response.status_code == 422
    assert code in response.content.decode()
    assert await Share.objects.acount() == 1


async def test_there_must_be_something_to_share(async_client: AsyncClient) -> None:
    await conversation()
    response = await async_client.post("/ui/chat/share", {"c": "c1"})
    assert "NOTHING_TO_SHARE" in response.content.decode()


def test_a_link_is_opened_by_all_users_and_revoked_by_those_who_see_the_conversation(
    configure: Callable[..., None],
) -> None:
    configure(require_login=True)
    people = {name: Client(headers=HTML) for name in ("ada", "bob", "staff")}
    for name, client in people.items():
        client.force_login(User.objects.create_user(name, is_staff=name == "staff"))
    row = Conversation.objects.create(
        id="c1", provider="openai", model="m", owner=User.objects.get(username="ada")
    )
    turn = Turn.objects.create(
        conversation=row, role="user", parts=[{"type": "text", "text": "Where is the key?"}]
    )
    Conversation.objects.update(head=turn.pk)
    made = people["ada"].post("/ui/chat/share", {"c": "c1"}).content.decode()
    assert "All users who have the link can read it after a login" in visible(made)
    address = re.search(r"/shared/[0-9a-f]{32}", made)
    assert address
    link, form = address[0], {"c": "c1", "link": Share.objects.get().pk}

    for path in (link, MISSING):
        stranger = Client(headers=HTML).get(path)
        assert (stranger.status_code, stranger["Location"]) == (
            302,
            f"/login?next={path.replace('/', '%2F')}",
        )
    assert "Where is the key?" in people["bob"].get(link).content.decode()
    assert people["bob"].post("/ui/chat/revoke", form).status_code == 404
    assert people["bob"].get(link).status_code == 200
    assert people["staff"].post("/ui/chat/revoke", form).status_code == 200
    assert people["bob"].get(link).status_code == 404
    # A second press finds it gone.
    assert people["ada"].post("/ui/chat/revoke", form).status_code == 200

    people["ada"].post("/ui/chat/share", {"c": "c1"})
    User.objects.filter(username="ada").delete()
    assert not Share.objects.exists() and Conversation.objects.exists()


@pytest.mark.parametrize("link", ["", "x\0y", "é", "0" * 64, "a/b"])
async def test_a_link_that_is_none_is_not_revoked(async_client: AsyncClient, link: str) -> None:
    await cited_answer()
    response = await async_client.post("/ui/chat/revoke", {"c": "c1", "link": link})
    assert response.status_code in (200, 404)


def test_a_link_is_revoked_by_who_made_it_and_sees_the_conversation_no_more(
    configure: Callable[..., None],
) -> None:
    configure(require_login=True)
    boss, bob = User.objects.create_user("boss", is_staff=True), User.objects.create_user("bob")
    of_ada = Conversation.objects.create(
        id="c1", provider="openai", model="m", title="Of ada", owner=User.objects.create_user("ada")
    )
    Conversation.objects.create(id="c2", provider="openai", model="m", owner=boss)
    expires_at = timezone.now() + timedelta(days=1)
    made = {
        pk: Share.objects.create(
            token_hash=pk * 64, conversation=of_ada, creator=creator, title="Of ada", html="x",
            expires_at=expires_at,
        )
        for pk, creator in (("a", boss), ("b", bob))
    }  # fmt: skip
    User.objects.filter(username="boss").update(is_staff=False)
    client = Client(headers=HTML)
    client.force_login(User.objects.get(username="boss"))
    assert client.post("/ui/chat/revoke", {"c": "c2", "link": made["b"].pk}).status_code == 404
    assert client.post("/ui/chat/revoke", {"c": "c2", "link": made["a"].pk}).status_code == 200
    assert [row.creator for row in Share.objects.all()] == [bob]


async def test_a_conversation_that_is_deleted_while_it_is_copied_is_not_found(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cited_answer()
    copied = standalone.copied

    def deleting(title: str, views: Sequence[Exchange]) -> tuple[str, Iterator[str]]:
        Conversation.objects.all().delete()
        return copied(title, views)

    monkeypatch.setattr(standalone, "copied", deleting)
    assert (await async_client.post("/ui/chat/share", {"c": "c1"})).status_code == 404
    assert not await Share.objects.aexists()
