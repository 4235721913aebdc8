"""Codex on the chat page: its flags, what is missing, and logging in. No Codex is started here."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.agents.providers.base import Availability, Model
from apps.agents.providers.codex.account import Login
from apps.agents.providers.codex.flags import chosen as flags_of
from apps.agents.providers.codex.provider import NOT_INSTALLED, TURNED_OFF, CodexProvider
from apps.conversations import services
from apps.conversations.models import Conversation

pytestmark = [pytest.mark.django_db, pytest.mark.door]

MODELS = (
    Model("large", "Large", "codex", ("low", "medium", "high", "ultra")),
    Model("small", "Small", "codex", ("low", "medium", "high")),
)
PANEL = "/ui/chat/picker?provider=codex"


class Accounts:
    """What the page uses of them."""

    login: Login | None = None

    def begin_login(self) -> Login:
        self.login = Login("1", "https://example.org/device", "ABCD-EFGH")
        return self.login

    def cancel_login(self) -> None:
        self.login = None


@pytest.fixture
def codex(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Accounts]:
    """codex(available, tools, reason): Codex as it says of itself."""

    def say(available: bool = True, tools: bool = True, reason: str | None = None) -> Accounts:
        accounts = Accounts()

        async def availability(self: CodexProvider) -> Availability:
            return Availability(available, tools, reason)

        async def models(self: CodexProvider) -> tuple[Model, ...]:
            return MODELS

        async def with_accounts(self: CodexProvider, act: Callable[[Any], Any]) -> Any:
            await asyncio.sleep(0)
            return act(accounts)

        for method in (availability, models, with_accounts):
            monkeypatch.setattr(CodexProvider, method.__name__, method)
        return accounts

    return say


def shown(client: Client, url: str) -> str:
    return " ".join(client.get(url).content.decode().split())


@pytest.mark.door
def test_the_panel_has_the_contracts_flags_set_to_their_defaults(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex()
    page = shown(client, PANEL)
    assert "Applies only when provider is OpenAI Codex." in page
    for chosen in ("workspace-write", "on-failure", "high"):
        assert f'<option value="{chosen}" selected>' in page
    for label in ("Workspace write (default)", "On failure (default)", "High (default)"):
        assert label in page
    for box in ("networkAccessEnabled", "webSearchEnabled"):
        assert f'name="{box}">' in page
    assert "Network access and web search are off by default" in page
    assert "private code and code from others" in page
    assert "runs as “Never”" in page


def test_other_providers_have_no_panel(client: Client, codex: Callable[..., Accounts]) -> None:
    codex()
    assert "Codex flags" not in shown(client, "/ui/chat/picker?provider=builtin")


@pytest.mark.parametrize(("model", "offered"), [("large", True), ("small", False)])
def test_only_the_efforts_of_the_model_are_offered(
    client: Client, codex: Callable[..., Accounts], model: str, offered: bool
) -> None:
    codex()
    assert ('value="ultra"' in shown(client, f"{PANEL}&model={model}")) is offered


def test_another_model_keeps_the_flags_and_another_provider_resets_them(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex()
    html = shown(client, f"{PANEL}&model=small&flags=1&sandboxMode=read-only&webSearchEnabled=on")
    assert '<option value="read-only" selected>' in html
    assert 'name="networkAccessEnabled">' in html
    assert 'name="webSearchEnabled" checked' in html
    assert '<option value="workspace-write" selected>' in shown(client, PANEL)


def test_a_conversation_opens_with_its_own_flags(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex()
    flags = {**flags_of({}), "sandboxMode": "read-only", "threadId": "t"}
    conversation = services.create(provider="codex", model="large", flags=flags)
    page = shown(client, f"/chat?c={conversation.id}")
    assert '<option value="read-only" selected>' in page


def test_an_invalid_flag_is_refused_before_a_run_starts(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex()
    form = {"c": "c1", "provider": "codex", "model": "large", "message": "Why?"}
    refused = client.post("/ui/chat/send", {**form, "flags": "1", "sandboxMode": "none"})
    assert refused.status_code == 400
    assert "sandboxMode must be one of" in refused.content.decode()
    assert not Conversation.objects.exists()


def test_without_its_tools_no_message_can_be_sent(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex(tools=False, reason="no answer")
    assert "Codex requires MCP tools" in shown(client, PANEL)
    form = {"c": "c1", "provider": "codex", "model": "large", "message": "Why?", "flags": "1"}
    refused = client.post("/ui/chat/send", {**form, **flags_of({})})
    assert refused.status_code == 503
    assert "Codex requires MCP tools" in refused.content.decode()
    assert not Conversation.objects.exists()


def test_missing_parts_are_shown_with_instructions(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex(available=False, reason=NOT_INSTALLED)
    assert "requirements-codex.txt" in shown(client, "/ui/chat/codex")
    codex(available=False, reason="Codex is not logged in.")
    page = shown(client, "/ui/chat/codex")
    assert "Codex is not logged in." in page
    assert "codex login" in page
    assert "config.toml" in page
    assert "Set up Codex" in shown(client, "/ui/chat/picker?provider=codex")
    assert "Set up Codex" in client.get("/providers").content.decode()


def test_no_login_is_offered_where_the_environment_turns_codex_off(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex(available=False, reason=TURNED_OFF)
    page = shown(client, "/ui/chat/codex")
    assert "remove that setting" in page
    assert "Log in" not in page and "codex login" not in page


def test_the_providers_page_has_no_list_of_models_to_bring_up_to_date(
    client: Client, codex: Callable[..., Accounts]
) -> None:
    codex(available=True)
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/providers"}
    panel = client.get("/ui/chat/codex", headers=headers).content.decode()
    assert "Codex is ready" in panel
    assert "/ui/chat/picker" not in panel
    headers["HX-Current-URL"] = "http://testserver/chat"
    assert "/ui/chat/picker" in client.get("/ui/chat/codex", headers=headers).content.decode()


def test_logging_in_with_a_code(client: Client, codex: Callable[..., Accounts]) -> None:
    accounts = codex(available=False, reason="Codex is not logged in.")
    answer = client.post("/ui/chat/codex/login", headers={"Accept-Encoding": "gzip"})
    # Not compressed, so that its length tells nothing of the code.
    page = answer.content.decode()
    assert "ABCD-EFGH" in page and "no-store" in answer["Cache-Control"]
    assert "https://example.org/device" in page
    assert 'hx-trigger="every 2s"' in page
    assert accounts.login is not None
    accounts.login = Login("1", "u", "c", "failed", "It took too long.")
    failed = shown(client, "/ui/chat/codex")
    assert "The login failed: It took too long." in failed
    assert "load delay" not in failed
    accounts.begin_login()
    cancelled = client.post("/ui/chat/codex/cancel").content.decode()
    assert accounts.login is None
    assert "ABCD-EFGH" not in cancelled
    codex()
    assert "Codex is ready." in shown(client, "/ui/chat/codex")
