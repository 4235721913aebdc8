"""How often somebody may ask, in each family's own words, and whose requests count together."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import AsyncClient, Client

from apps.core.security import rate_limits

pytestmark = pytest.mark.django_db

TOKEN = {"authorization": "Bearer key-1"}


@pytest.fixture(autouse=True)
def guarded(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three requests and two questions a minute, in a minute that does not end."""
    monkeypatch.setattr(rate_limits.time, "time", lambda: 600.0)
    tokens = {"api_token": "key-1", "mcp_token": "key-1"}
    configure(require_login=True, api_rate=3, chat_rate=2, **tokens)
    cache.clear()
    yield
    cache.clear()


def ask(client: Client, path: str = "/ingest/roots", **more: Any) -> Any:
    return client.get(path, **more)


@pytest.mark.door
def test_the_request_above_the_limit_is_refused(client: Client) -> None:
    answers = [ask(client, headers=TOKEN) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    last = answers[-1]
    assert (last["Retry-After"], last.json()["code"]) == ("60", "RATE_LIMITED")
    assert ask(client, "/health").status_code == 200


@pytest.mark.fault("Guessed passwords and endless requests")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tools/ingested-repos", {"error": "RATE_LIMITED"}),
        ("/conversations", {"status": "error", "code": "RATE_LIMITED"}),
        ("/ingest/roots", {"status": "error", "code": "RATE_LIMITED"}),
        ("/lmstudio/status", {"status": "error", "baseUrl": None}),
        ("/agents", {"status": "error", "code": "RATE_LIMITED"}),
        ("/logs", {"status": "error", "code": "RATE_LIMITED"}),
        ("/version", {"status": "error", "code": "RATE_LIMITED"}),
    ],
)
def test_each_family_says_it_in_its_own_envelope(
    client: Client, path: str, expected: dict[str, Any]
) -> None:
    for _ in range(3):
        ask(client, headers=TOKEN)
    answer = ask(client, path, headers=TOKEN)
    assert answer.status_code == 429
    assert expected.items() <= answer.json().items()


@pytest.mark.fault("Guessed passwords and endless requests")
def test_a_user_a_token_and_an_address_are_counted_apart(client: Client) -> None:
    ada, other = Client(), Client()
    ada.force_login(User.objects.create_user("ada"))
    for who, headers in ((ada, {}), (client, TOKEN)):
        assert [ask(who, headers=headers).status_code for _ in range(4)][-2:] == [200, 429]
    # Guessing a token is counted by address.
    guesses = [ask(other, headers={"authorization": f"Bearer {n}"}) for n in range(4)]
    assert [guess.status_code for guess in guesses] == [401, 401, 401, 429]
    assert ask(other, REMOTE_ADDR="10.0.0.9").status_code == 401


def test_questions_have_a_limit_of_their_own(client: Client) -> None:
    body = {"provider": "none", "model": "m", "conversationId": "c1", "message": "x"}
    post = lambda: client.post(  # noqa: E731
        "/chat", body, content_type="application/json", headers=TOKEN
    )
    assert [post().status_code for _ in range(3)] == [400, 400, 429]
    assert ask(client, headers=TOKEN).status_code == 200


def test_the_page_shows_the_refusal_beside_the_message_and_keeps_the_text() -> None:
    ada = Client()
    ada.force_login(User.objects.create_user("ada"))
    form = {"c": "c1", "message": "x", "provider": "none", "model": "m"}
    answers = [ada.post("/ui/chat/send", form) for _ in range(3)]
    assert [answer["X-Problem"] for answer in answers][-1] == "RATE_LIMITED"
    assert "The question is kept." in answers[-1].content.decode()


@pytest.mark.fault("Guessed passwords and endless requests")
def test_a_tool_over_mcp_fails_as_tools_do(client: Client) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ListIngestedRepositories", "arguments": {}},
    }
    headers = {**TOKEN, "mcp-protocol-version": "2025-11-25"}
    for _ in range(3):
        client.post("/mcp", message, content_type="application/json", headers=headers)
    answer = client.post("/mcp", message, content_type="application/json", headers=headers)
    result = answer.json()["result"]
    assert (answer.status_code, result["isError"]) == (200, True)
    assert result["content"][0]["text"].startswith("RATE_LIMITED")


LOGINS = ["/login", "/admin/login/"]


@pytest.mark.fault("Guessed passwords and endless requests")
@pytest.mark.parametrize("path", LOGINS)
def test_after_five_failures_no_password_is_tried(path: str) -> None:
    User.objects.create_superuser("ada", password="right")
    wrong, right = ({"username": "ada", "password": word} for word in ("wrong", "right"))
    client = Client()
    assert {client.post(path, wrong).status_code for _ in range(5)} == {200}
    refused = client.post(path, right)
    assert (refused.status_code, "sessionid" in client.cookies) == (429, False)
    assert 0 < int(refused["Retry-After"]) <= 900
    assert "text/html" in refused["content-type"]
    # Neither the other door, nor other letters of the name, is a way round.
    other = next(each for each in LOGINS if each != path)
    for name in (
        " ADA",
        "\N{FULLWIDTH LATIN SMALL LETTER A}da",
        "ad\N{FEMININE ORDINAL INDICATOR}",
    ):
        assert client.post(other, {**right, "username": name}).status_code == 429
    # Somebody else at the same address, and she herself elsewhere, log in.
    User.objects.create_superuser("bob", password="right")
    assert client.post(path, {**right, "username": "bob"}).status_code == 302
    assert Client().post(path, right, REMOTE_ADDR="10.0.0.9").status_code == 302


@pytest.mark.django_db(transaction=True)
async def test_guesses_that_come_together_are_counted_one_by_one() -> None:
    await User.objects.acreate_user("ada", password="right")
    guesses = [
        AsyncClient().post("/login", {"username": "ada", "password": f"wrong-{n}"})
        for n in range(12)
    ]
    answers = await asyncio.gather(*guesses)
    assert Counter(answer.status_code for answer in answers) == {200: 5, 429: 7}


def test_the_wait_after_failed_logins_is_long_enough(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last failure comes a minute before the quarter of an hour of the first is over."""
    now = time.time()
    monkeypatch.setattr(rate_limits.time, "time", lambda: now)
    wrong = {"username": "ada", "password": "wrong"}
    client.post("/login", wrong)
    now += 840
    for _ in range(4):
        client.post("/login", wrong)
    refused = client.post("/login", wrong)
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
    now += 61
    assert client.post("/login", wrong).status_code == 200


@pytest.mark.door
def test_a_login_that_succeeds_forgets_the_failures(client: Client) -> None:
    User.objects.create_user("ada", password="right")
    for word in (*["wrong"] * 4, "right", *["wrong"] * 4, "right"):
        answer = client.post("/login", {"username": "ada", "password": word})
    assert answer.status_code == 302


def test_on_this_machine_alone_nothing_is_limited(
    client: Client, configure: Callable[..., None]
) -> None:
    configure(require_login=False, api_token="", mcp_token="")
    assert {ask(client).status_code for _ in range(10)} == {200}
    configure(allowed_hosts=("code.example",), allow_open_access=True)
    assert [ask(client).status_code for _ in range(4)] == [200, 200, 200, 429]


def test_the_addresses_of_one_ipv6_network_count_as_one(client: Client) -> None:
    """Whoever has one of them has 2⁶⁴."""
    statuses = [ask(client, REMOTE_ADDR=f"2001:db8::{n}").status_code for n in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert ask(client, REMOTE_ADDR="2001:db8:0:1::1").status_code == 401
    User.objects.create_user("ada", password="right")
    for n in range(5):
        client.post("/login", {"username": "ada", "password": "x"}, REMOTE_ADDR=f"2001:db8::{n}")
    right = {"username": "ada", "password": "right"}
    assert client.post("/login", right, REMOTE_ADDR="2001:db8::9").status_code == 429
