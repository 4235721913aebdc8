"""The LM Studio page: one address for status, chat and embedding."""

from collections.abc import Callable
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from apps.servers import services
from apps.servers.kinds import LMSTUDIO
from apps.servers.models import SavedServer
from tests.stand_ins.lmstudio_server import LMStudioStandIn, llm

pytestmark = [pytest.mark.django_db, pytest.mark.door]
HTMX = {"HX-Request": "true"}


def press(
    client: Client, action: str, code: int = 200, *, typed: str = "", here: bool = True
) -> str:
    """Return the response to a button: reset, or check with the text of the field."""
    address = "127.0.0.1" if here else "192.168.1.9"
    response = client.post(
        f"/ui/lmstudio/{action}", {"baseUrl": typed}, headers=HTMX, REMOTE_ADDR=address
    )
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
