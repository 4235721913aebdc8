"""The LM Studio page: one address for status, chat and embedding."""

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client, override_settings

from apps.servers import services
from apps.servers.kinds import LMSTUDIO
from apps.servers.models import SavedServer
from tests.ports import free_ports
from tests.stand_ins.lmstudio_server import LMStudioStandIn, llm

pytestmark = [pytest.mark.django_db, pytest.mark.door]
HTMX = {"HX-Request": "true"}
TOKEN = "sk-lm-abcdefgh:ABCDEFGHIJ0123456789"


def press(
    client: Client,
    action: str,
    code: int = 200,
    *,
    typed: str = "",
    key: str = "",
    here: bool = True,
) -> str:
    """Return the response to a button: reset, or check with the texts of the fields."""
    address = "127.0.0.1" if here else "192.168.1.9"
    form = {"baseUrl": typed, "key": key}
    response = client.post(f"/ui/lmstudio/{action}", form, headers=HTMX, REMOTE_ADDR=address)
    assert response.status_code == code
    return unescape(response.content.decode())


def test_the_page_makes_no_request_until_a_button_is_pressed(
    client: Client, server: LMStudioStandIn
) -> None:
    page = client.get("/lmstudio").content.decode()
    assert "Idle" in page
    assert f"Default: {server.url}" in page
    assert f'value="{server.url}"' in page
    assert server.requests == []


def test_check_status_saves_the_address_of_the_field(
    client: Client, server: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    configure(lmstudio_base_url="http://127.0.0.1:9")
    server.models = [llm("plain"), {"type": "llm", "modelKey": "<b>bold</b>"}]
    shown = press(client, "check", typed=f" {server.url}/v1 ")
    assert f"Connected to {server.url} (2 models)" in shown
    assert "Default: http://127.0.0.1:9" in shown
    assert "<html" not in shown
    assert "4.9 GB" in shown
    assert services.current(LMSTUDIO).address == server.url
    assert SavedServer.objects.count() == 1


def test_model_names_are_escaped(client: Client, server: LMStudioStandIn) -> None:
    server.models = [{"type": "<i>", "modelKey": "<b>bold</b>", "displayName": "<script>"}]
    response = client.get("/ui/lmstudio/models", headers=HTMX)
    assert b"<b>" not in response.content
    assert b"<script>" not in response.content
    assert b"<i>" not in response.content


def test_a_failure_does_not_lead_to_the_page_that_shows_it(client: Client) -> None:
    services.save(LMSTUDIO, f"http://127.0.0.1:{free_ports(1)}")
    shown = client.get("/ui/lmstudio/models", headers=HTMX).content.decode()
    assert "or change the address." in shown and "LM Studio page" not in shown


def test_reset_restores_the_address_of_the_variable(
    client: Client, server: LMStudioStandIn
) -> None:
    services.save(LMSTUDIO, "http://127.0.0.1:9")
    shown = press(client, "reset")
    assert "Idle" in shown
    assert f'Using base URL: <span class="mono">{server.url}</span>' in shown
    assert services.current(LMSTUDIO).address == server.url


def test_refresh_queries_the_current_address_and_keeps_the_field(
    client: Client, server: LMStudioStandIn
) -> None:
    query = {"baseUrl": "http://127.0.0.1:9"}
    shown = client.get("/ui/lmstudio/models", query, headers=HTMX).content.decode()
    assert f"Connected to {server.url}" in shown
    assert 'value="http://127.0.0.1:9"' in shown


def test_an_empty_list_is_reported(client: Client, server: LMStudioStandIn) -> None:
    server.models = []
    shown = client.get("/ui/lmstudio/models", headers=HTMX).content.decode()
    assert "(0 models)" in shown
    assert "No models reported by LM Studio." in shown


def test_an_invalid_address_is_refused_and_not_saved(client: Client) -> None:
    shown = press(client, "check", 422, typed="http://169.254.169.254")
    assert "must not lead to a link-local" in shown
    assert 'value="http://169.254.169.254"' in shown
    assert 'aria-invalid="true"' in shown
    assert "autofocus" in shown
    assert not SavedServer.objects.exists()


def test_an_address_that_does_not_answer_is_saved_and_reported(client: Client) -> None:
    shown = press(client, "check", typed="http://127.0.0.1:9")
    assert "Nothing answers at http://127.0.0.1:9" in shown
    assert "autofocus" in shown
    assert "aria-invalid" not in shown


@pytest.mark.fault("An address that leads elsewhere")
def test_an_anonymous_remote_client_changes_nothing(
    client: Client, server: LMStudioStandIn
) -> None:
    services.save(LMSTUDIO, server.url)
    other = "http://192.168.1.1:1234"
    assert "Log in to use another address" in press(client, "check", 422, typed=other, here=False)
    assert "Log in to use another address" in press(client, "reset", 422, here=False)
    assert services.current(LMSTUDIO).address == server.url
    # Reading is allowed.
    assert "Connected to" in press(client, "check", typed=server.url, here=False)


def test_a_logged_in_user_may_change_it_from_anywhere(client: Client) -> None:
    client.force_login(User.objects.create_user("ada"))
    assert "Idle" in press(client, "reset", here=False)


def test_without_javascript_the_same_forms_return_the_page(
    client: Client, server: LMStudioStandIn
) -> None:
    response = client.post("/ui/lmstudio/check", {"baseUrl": server.url})
    assert b"<html" in response.content
    assert b"Connected to" in response.content


def test_without_a_database_the_variable_is_used(
    server: LMStudioStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.save(LMSTUDIO, "http://127.0.0.1:9")

    def away(kind: str) -> None:
        raise OperationalError("no such host")

    monkeypatch.setattr(SavedServer.objects, "filter", away)
    assert services.current(LMSTUDIO).address == server.url


# --- the token ------------------------------------------------------------------------------------


# Chat reads the row in a connection of its own.
@pytest.mark.django_db(transaction=True)
def test_a_token_is_saved_with_its_address(client: Client, server: LMStudioStandIn) -> None:
    server.token = TOKEN
    server.models = [llm("plain")]
    assert "enter it on the LM Studio page" in press(client, "check", typed=server.url)
    shown = press(client, "check", typed=server.url, key=TOKEN)
    assert f"Connected to {server.url} (1 model)" in shown
    assert "A token is saved, encrypted." in shown
    assert TOKEN not in shown + client.get("/lmstudio").content.decode()
    assert TOKEN not in SavedServer.objects.get().key
    assert client.get("/chat/models?provider=lmstudio").json()["models"]
    # A blank field keeps it.
    assert "Connected to" in press(client, "check", typed=server.url)
    press(client, "reset")
    assert services.current(LMSTUDIO).key == ""


def test_its_token_is_never_sent_to_another_address(
    client: Client, server: LMStudioStandIn
) -> None:
    services.save(LMSTUDIO, server.url, TOKEN)
    with LMStudioStandIn(token=TOKEN) as other:
        assert "asks for an API token" in press(client, "check", typed=other.url)
        assert services.current(LMSTUDIO).key == ""
        assert TOKEN not in other.handshakes


def test_a_token_does_not_follow_the_address_of_the_environment(
    client: Client, server: LMStudioStandIn, configure: Callable[..., None], settings: Any
) -> None:
    services.save(LMSTUDIO, server.url, TOKEN)
    # Around `configure`, which ends later, `override_settings` would stay.
    settings.VARIABLES_SET = frozenset({"LMSTUDIO_BASE_URL"})
    with LMStudioStandIn(token=TOKEN) as other:
        configure(lmstudio_base_url=other.url)
        assert "asks for an API token" in press(client, "check", typed=other.url)
        assert TOKEN not in other.handshakes


def test_the_environment_wins(
    client: Client, server: LMStudioStandIn, configure: Callable[..., None], settings: Any
) -> None:
    services.save(LMSTUDIO, "http://127.0.0.1:9", TOKEN)
    settings.VARIABLES_SET = frozenset({"LMSTUDIO_BASE_URL"})
    configure(lmstudio_api_token=TOKEN)
    assert services.current(LMSTUDIO).address == server.url
    page = client.get("/lmstudio").content.decode()
    assert "Set by <code>LMSTUDIO_BASE_URL</code>" in page
    assert "set by <code>CODEINFO_LMSTUDIO_API_TOKEN</code>" in page
    assert 'name="key"' not in page
    assert "Reset to default" not in page
    refused = press(client, "check", 422, typed="http://127.0.0.1:9")
    assert "LMSTUDIO_BASE_URL sets the address" in refused


def test_a_malformed_token_is_refused_at_its_field(client: Client) -> None:
    shown = press(client, "check", 422, typed="http://127.0.0.1:9", key="canary-1")
    assert "The token must look like" in shown
    assert "canary-1" not in shown
    field = shown[shown.index('id="token"') :]
    assert 'aria-invalid="true" autofocus' in field[: field.index(">")]
    assert not SavedServer.objects.exists()


def test_an_unreadable_token_is_asked_for_again(client: Client, server: LMStudioStandIn) -> None:
    services.save(LMSTUDIO, server.url, TOKEN)
    with override_settings(SECRET_KEY="another"):
        assert "Enter it again." in client.get("/lmstudio").content.decode()
        assert services.current(LMSTUDIO).key == ""
        assert "A token is saved" in press(client, "check", typed=server.url, key=TOKEN)


def test_the_form_of_the_token_has_no_get(client: Client) -> None:
    """A form that is sent by GET has its fields in the URL, which logs and histories keep."""
    page = client.get("/lmstudio").content.decode()
    form = page[page.index('action="/ui/lmstudio/check"') :].partition("</form>")[0]
    assert 'name="key"' in form and 'formmethod="get"' not in form
