"""Availability of Codex, the reasons when it is unavailable, and login."""

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.agents.providers.codex import home, provider, server
from apps.agents.providers.codex.provider import CodexProvider
from apps.core.config import config
from tests.agents.rigs.codex import CodexBackend
from tests.stand_ins.login_server import LoginStandIn
from tests.stand_ins.responses_server import KEY, write_login

pytestmark = pytest.mark.door

PROVIDER = CodexProvider()


@pytest.fixture
def empty(configure: Callable[..., None], tmp_path: Path) -> Iterator[Path]:
    """An empty home, on a host without a login."""
    configure(
        mcp_force_codex="",
        codex_home=tmp_path / "codex",
        codex_workdir=tmp_path / "work",
        host_codex_home=tmp_path / "host",
        mcp_url="http://127.0.0.1:9/mcp",
    )
    yield tmp_path / "codex"
    server.server_at(tmp_path / "codex").close()


async def reason() -> str:
    state = await PROVIDER.availability()
    assert not state.available
    assert not state.tools_available
    return state.reason or ""


async def test_without_a_login_codex_is_unavailable(empty: Path) -> None:
    assert await reason() == f"Codex is not logged in (Missing auth.json in {empty})."
    assert "analytics" in (empty / "config.toml").read_text()


async def test_a_login_outside_codeinfo_is_noticed(codex: CodexBackend, empty: Path) -> None:
    assert "not logged in" in await reason()
    write_login(empty, codex.api.url)
    assert (await PROVIDER.availability()).available


async def test_a_login_of_the_host_is_copied_with_mode_0600(
    codex: CodexBackend, empty: Path
) -> None:
    write_login(config().host_codex_home, codex.api.url)
    state = await PROVIDER.availability()
    assert state.available
    copy = empty / "auth.json"
    assert json.loads(copy.read_text())["OPENAI_API_KEY"] == KEY
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert "openai_base_url" not in (empty / "config.toml").read_text(), (
        "its login, not its settings"
    )


def test_files_in_a_home_are_never_overwritten(empty: Path) -> None:
    empty.mkdir(parents=True)
    for name in (home.AUTH, home.CONFIG):
        (empty / name).write_text("mine")
    config().host_codex_home.mkdir()
    (config().host_codex_home / home.AUTH).write_text("theirs")
    home.prepare(empty)
    assert (empty / home.AUTH).read_text() == (empty / home.CONFIG).read_text() == "mine"


def test_an_agents_home_gets_the_login_of_the_chat(empty: Path) -> None:
    empty.mkdir(parents=True)
    (empty / home.AUTH).write_text("{}")
    home.prepare(empty / "agents" / "reviewer")
    assert (empty / "agents" / "reviewer" / home.AUTH).read_text() == "{}"
    assert "analytics" in (empty / "agents" / "reviewer" / home.CONFIG).read_text()


async def test_without_our_own_endpoint_it_has_no_tools(
    codex: CodexBackend, configure: Callable[..., None]
) -> None:
    assert (await PROVIDER.availability()).tools_available
    configure(mcp_url="http://127.0.0.1:9/mcp")
    state = await PROVIDER.availability()
    assert (state.available, state.tools_available) == (True, False)
    assert "http://127.0.0.1:9/mcp: no answer" in (state.reason or "")


async def test_the_token_of_our_endpoint_is_sent_to_it(
    codex: CodexBackend, configure: Callable[..., None]
) -> None:
    configure(mcp_token="let-me-in")
    assert (await PROVIDER.availability()).tools_available
    assert "Bearer let-me-in" in codex.mcp.tokens


async def test_a_missing_sdk_is_reported_with_the_command_that_installs_it(
    codex: CodexBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "PACKAGES", ("openai_codex", "no_such_package"))
    assert provider.INSTALL in await reason()


async def test_turned_off_it_is_never_started(empty: Path, configure: Callable[..., None]) -> None:
    configure(mcp_force_codex="false")
    assert "MCP_FORCE_CODEX_AVAILABLE" in await reason()
    assert server.server_at(empty).client is None


async def test_its_own_models_are_listed_with_their_efforts(
    codex: CodexBackend, empty: Path
) -> None:
    write_login(empty, codex.api.url)
    models = await PROVIDER.models()
    assert len({model.key for model in models}) == len(models) > 1
    assert all({"low", "medium", "high"} <= set(model.efforts) for model in models)
    assert {model.type for model in models} == {"codex"}


async def test_a_login_returns_a_url_and_a_code(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoginStandIn() as openai:
        monkeypatch.setenv("CODEX_APP_SERVER_LOGIN_ISSUER", openai.url)
        login = await PROVIDER.with_accounts(lambda accounts: accounts.begin_login())
        assert (login.code, login.state) == ("ABCD-EFGH", "waiting")
        assert login.url.startswith(openai.url)
        await PROVIDER.with_accounts(lambda accounts: accounts.cancel_login())
        assert await PROVIDER.with_accounts(lambda accounts: accounts.login) is None
        assert "not logged in" in await reason()


async def test_a_login_that_cannot_start_gives_a_reason(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_APP_SERVER_LOGIN_ISSUER", "http://127.0.0.1:9")
    with pytest.raises(provider.Unavailable, match="The login could not be begun"):
        await PROVIDER.with_accounts(lambda accounts: accounts.begin_login())
