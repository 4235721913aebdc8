"""The Providers page: address and key of the servers that answer."""

import logging
import re
from collections.abc import Callable, Iterator
from html import unescape

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.test import Client, override_settings

from apps.agents.providers.openai import OpenAIProvider
from apps.logs.redaction import redacted
from apps.servers import services
from apps.servers.kinds import LMSTUDIO, OPENAI
from apps.servers.models import SavedServer
from tests.agents.fakes import chat_request, record
from tests.stand_ins.lmstudio_server import LMStudioStandIn, llm
from tests.stand_ins.openai_scripts import Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn

pytestmark = [pytest.mark.door, pytest.mark.django_db(transaction=True)]

KEY = "canary-provider-key-1"
TOKEN = "sk-lm-abcdefgh:ABCDEFGHIJ0123456789"
NOWHERE = "http://127.0.0.1:9/v1"
HTMX = {"HX-Request": "true"}
Configure = Callable[..., None]


@pytest.fixture
def server() -> Iterator[OpenAIStandIn]:
    """A server that asks for KEY; the environment names none."""
    with OpenAIStandIn(key=KEY) as server:
        server.models = ["llama-3", "<b>bold</b>"]
        yield server


@pytest.fixture
def lmstudio(configure: Configure) -> Iterator[LMStudioStandIn]:
    with LMStudioStandIn(token=TOKEN) as server:
        server.models = [llm("plain")]
        yield server


def press(client: Client, do: str, code: int = 200, *, to: str = "openai", **form: str) -> str:
    """The card after a button."""
    response = client.post(f"/ui/providers/{to}", {"do": do, **form}, headers=HTMX)
    assert response.status_code == code
    return unescape(response.content.decode())


def card(client: Client, which: str = "openai") -> str:
    """The card of the page, and the state that it requests."""
    page = unescape(client.get("/providers").content.decode())
    form = page[page.index(f'id="server-{which}"') :].partition("</section>")[0]
    return form + unescape(client.get(f"/ui/providers/{which}", headers=HTMX).content.decode())


async def models() -> list[str]:
    return [model.key for model in await OpenAIProvider().models()]


def test_the_page_asks_no_server_until_it_is_open(client: Client, server: OpenAIStandIn) -> None:
    services.save(OPENAI, server.url, KEY)
    page = client.get("/providers").content.decode()
    assert 'hx-get="/ui/providers/openai" hx-trigger="load"' in page
    assert server.url in page
    assert KEY not in page
    assert server.exchanges == []


def test_a_saved_server_answers_at_once(client: Client, server: OpenAIStandIn) -> None:
    shown = press(client, "save", address=f" {server.url}/ ", key=f" {KEY} ")
    assert "Saved." in shown
    assert "2 models: llama-3" in shown
    listed = client.get("/chat/models?provider=openai").json()
    assert [model["key"] for model in listed["models"]] == server.models
    assert server.exchanges[-1].headers["authorization"] == f"Bearer {KEY}"


async def test_its_key_is_sent_with_a_question(server: OpenAIStandIn) -> None:
    """The connection goes to the address that was checked, and the request to the name."""
    url = server.url.replace("127.0.0.1", "localhost")
    await database_sync_to_async(services.save)(OPENAI, url, KEY)
    server.scripts["mine"] = Script([[*say("Hi"), *end()]])
    recorded = await record(OpenAIProvider(), chat_request("mine"))
    assert recorded.text == "Hi"
    assert server.exchanges[-1].headers["authorization"] == f"Bearer {KEY}"
    assert f"http://{server.exchanges[-1].headers['host']}/v1" == url


def test_a_test_saves_nothing(client: Client, server: OpenAIStandIn) -> None:
    shown = press(client, "test", address=server.url, key=KEY)
    assert "Not saved. Connected. 2 models" in shown
    assert not SavedServer.objects.exists()


def test_no_response_and_no_row_has_the_key(
    client: Client, server: OpenAIStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    pages = [press(client, "test", address=server.url, key=KEY)]
    pages += [press(client, "save", address=server.url, key=KEY), card(client)]
    pages += [press(client, "save", 422, address="nonsense", key=KEY)]
    pages += [client.get("/providers").content.decode(), client.get("/").content.decode()]
    assert not [page for page in pages if KEY in page]
    assert KEY not in SavedServer.objects.get().key
    assert KEY not in caplog.text
    assert redacted(f"an error about {KEY}") == "an error about [redacted]"


def test_a_blank_key_keeps_the_saved_one(client: Client, server: OpenAIStandIn) -> None:
    press(client, "save", address=server.url, key=KEY)
    assert "A key is saved, encrypted" in card(client)
    assert "2 models" in press(client, "test", address=server.url)
    assert "2 models" in press(client, "save", address=server.url)


def test_a_key_is_never_sent_to_another_address(client: Client, server: OpenAIStandIn) -> None:
    press(client, "save", address=server.url, key=KEY)
    with OpenAIStandIn(key=KEY) as other:
        for do in ("test", "save"):
            shown = press(client, do, address=other.url)
            assert "asks for a key: enter it on the Providers page" in shown
        assert other.exchanges
        assert not [each for each in other.exchanges if "authorization" in each.headers]


def test_a_wrong_key_is_reported(client: Client, server: OpenAIStandIn) -> None:
    shown = press(client, "save", address=server.url, key="wrong-key")
    assert "refused the key: correct it on the Providers page" in shown
    assert "wrong-key" not in shown


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("", "must be a URL such as"),
        ("http://169.254.169.254/v1", "must not lead to a link-local"),
        ("http://user:pw@127.0.0.1/v1", "must be a URL such as"),
        ("http://127.0.0.1/v1?x=1", "must be a URL such as"),
        ("ftp://127.0.0.1", "must be a URL such as"),
        ("http://127.0.0.1/" + "a" * 300, "must have at most 300 characters"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(
    client: Client, address: str, problem: str
) -> None:
    for do in ("test", "save"):
        shown = press(client, do, 422, address=address)
        assert problem in shown
        assert 'aria-invalid="true"' in shown
    assert not SavedServer.objects.exists()


def test_a_name_is_checked_when_it_is_used(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name led elsewhere when it was saved (DNS rebinding)."""
    monkeypatch.setattr("asyncio.BaseEventLoop.getaddrinfo", _metadata)
    shown = press(client, "save", address="http://rebinding.example/v1")
    assert "must not lead to a link-local, metadata or multicast address" in shown


async def _metadata(*args: object, **kwargs: object) -> list[tuple[object, ...]]:
    return [(2, 1, 6, "", ("169.254.169.254", 80))]


def test_a_key_with_characters_that_no_header_takes_is_refused(client: Client) -> None:
    assert "The key holds characters" in press(client, "save", 422, address=NOWHERE, key="ключ")


def test_a_server_that_does_not_answer_is_saved_and_reported(client: Client) -> None:
    shown = press(client, "save", address=NOWHERE)
    assert "Saved. Nothing answers at http://127.0.0.1:9." in shown
    assert SavedServer.objects.get().address == NOWHERE


def test_a_default_server_that_nobody_chose_is_no_error(client: Client) -> None:
    state = client.get("/ui/providers/lmstudio", headers=HTMX).content.decode()
    assert "Not connected." in state and "server__bad" not in state
    services.save(LMSTUDIO, NOWHERE.removesuffix("/v1"))
    assert "server__bad" in client.get("/ui/providers/lmstudio", headers=HTMX).content.decode()


def test_remove_forgets_server_and_key(client: Client, server: OpenAIStandIn) -> None:
    press(client, "save", address=server.url, key=KEY)
    shown = press(client, "remove")
    assert "Removed." in shown
    assert server.url not in shown
    assert not SavedServer.objects.exists()
    assert "Providers page" in client.get("/chat/models?provider=openai").json()["reason"]


def test_with_another_server_key_the_key_is_asked_for_again(
    client: Client, server: OpenAIStandIn
) -> None:
    press(client, "save", address=server.url, key=KEY)
    with override_settings(SECRET_KEY="another"):
        assert client.get("/providers").status_code == 200
        assert "Enter it again." in card(client)
        reason = client.get("/chat/models?provider=openai").json()["reason"]
        assert "encrypted with another server key" in reason
        assert "2 models" in press(client, "save", address=server.url, key=KEY)


def test_the_environment_wins(client: Client, server: OpenAIStandIn, configure: Configure) -> None:
    press(client, "save", address=NOWHERE)
    configure(openai_base_url=server.url, openai_api_key=KEY)
    shown = card(client)
    assert "Set by <code>CODEINFO_OPENAI_BASE_URL</code>" in shown
    assert "The key is set by <code>CODEINFO_OPENAI_API_KEY</code>" in shown
    assert "2 models" in shown
    assert f'value="{server.url}"' in shown
    assert 'value="save"' not in shown
    refused = press(client, "save", 422, address=NOWHERE)
    assert "CODEINFO_OPENAI_BASE_URL sets the address where codeinfo runs" in refused
    assert "2 models" in press(client, "test", address=NOWHERE)
    configure(openai_base_url=server.url.replace("//", "//user:canary-password@"))
    assert "canary-password" not in card(client)
    configure(openai_base_url="")
    assert services.current(OPENAI).address == NOWHERE


def test_a_key_of_the_environment_is_not_sent_to_a_saved_address(
    client: Client, server: OpenAIStandIn, configure: Configure
) -> None:
    configure(openai_api_key=KEY)
    press(client, "save", address=server.url)
    assert not [each for each in server.exchanges if "authorization" in each.headers]


def test_lm_studio_has_a_page_of_its_own(client: Client, lmstudio: LMStudioStandIn) -> None:
    services.save(LMSTUDIO, lmstudio.url, TOKEN)
    shown = card(client, "lmstudio")
    assert lmstudio.url in shown and "Connected. 1 model:" in shown
    assert 'href="/lmstudio"' in shown and "<input" not in shown
    press(client, "save", 404, to="lmstudio", address=NOWHERE)
    assert services.current(LMSTUDIO).address == lmstudio.url


def test_an_anonymous_remote_client_changes_nothing(client: Client, server: OpenAIStandIn) -> None:
    for do in ("test", "save", "remove"):
        response = client.post(
            "/ui/providers/openai",
            {"do": do, "address": server.url},
            headers=HTMX,
            REMOTE_ADDR="192.168.1.9",
        )
        assert response.status_code == 422
        assert b"Log in" in response.content
    assert server.exchanges == []
    client.force_login(User.objects.create_user("ada"))
    assert "2 models" in press(client, "save", address=server.url, key=KEY)


def test_without_javascript_the_forms_return_the_page(
    client: Client, server: OpenAIStandIn
) -> None:
    response = client.post(
        "/ui/providers/openai", {"do": "save", "address": server.url, "key": KEY}
    )
    assert b"<html" in response.content
    assert b"2 models" in response.content
    assert KEY.encode() not in response.content


def test_its_form_is_protected_as_those_of_other_pages(server: OpenAIStandIn) -> None:
    strict = Client(enforce_csrf_checks=True)
    page = strict.get("/providers")
    assert "Content-Security-Policy" in page.headers
    form = {"do": "save", "address": server.url, "key": KEY}
    assert strict.post("/ui/providers/openai", form).status_code == 403
    match = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.content.decode())
    assert match is not None
    form["csrfmiddlewaretoken"] = match[1]
    assert strict.post("/ui/providers/openai", form).status_code == 200


def test_an_unknown_server_is_not_found(client: Client) -> None:
    assert client.get("/ui/providers/hal").status_code == 404
    assert "do must be save" in press(client, "explode", 422)
