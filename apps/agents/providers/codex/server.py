"""The processes of Codex (`codex app-server`), one for each home, and how they are asked.

A process is started when it is first needed, started again when it is found dead or when somebody
logged in from outside, and ends with this one: its standard input closes.
Everything here blocks.
"""

import atexit
import logging
import threading
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from openai_codex import client as sdk
from openai_codex.client import CodexClient, CodexConfig
from openai_codex.errors import CodexError, TransportClosedError
from pydantic import BaseModel

from apps.agents.providers.codex import home as homes
from apps.agents.providers.codex.failures import not_started
from apps.agents.providers.codex.process import SUBPROCESS
from apps.core.config import ALIASES, Config, config

log = logging.getLogger("codeinfo.agents")

T = TypeVar("T")

# The SDK starts the process by itself.
sdk.subprocess = SUBPROCESS  # type: ignore[attr-defined, assignment]

LOST = (TransportClosedError, OSError)

# What makes of a coding agent an assistant that answers questions: no shell, no files of its own,
# no other agents, nothing fetched from elsewhere, and our own tools.
CHAT_ONLY = {
    "features.shell_tool": "false",
    "features.view_image": "false",
    "features.multi_agent": "false",
    "features.goals": "false",
    "features.apps": "false",
    "features.plugins": "false",
    "skills.bundled.enabled": "false",
    "project_doc_max_bytes": "0",
}
QUIET = {"check_for_update_on_startup": "false", "analytics.enabled": "false"}
# Our own settings, secrets among them, are none of Codex' business.
OURS = (*(setting.metadata["env"] for setting in fields(Config)), *ALIASES.values())
TOKEN_VARIABLE = "CODEINFO_MCP_TOKEN"


class AppServer:
    """Codex at one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._starting = threading.Lock()
        self._client: CodexClient | None = None
        self._signature: tuple[int, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the home's files have changed since the process read them."""
        return self._client is not None and self._signature != homes.signature(self.home)

    def ask(self, request: Callable[[CodexClient], T]) -> T:
        """The answer to a request that may be made twice: again where the process was found dead.

        Raises Unavailable where it does not start, and the SDK's errors.
        """
        client = self._running()
        try:
            return request(client)
        except LOST as error:
            self.lost(client, error)
        return request(self._running())

    def lost(self, client: CodexClient, error: Exception) -> None:
        """This process is dead: the next request starts another."""
        log.warning("Codex' process was lost: %s", type(error).__name__)
        self._end(client)

    def close(self) -> None:
        if self._client is not None:
            self._end(self._client)

    def _running(self) -> CodexClient:
        with self._starting:
            if self._client is None:
                self._client = self._started()
            return self._client

    def _started(self) -> CodexClient:
        client = CodexClient(self._config(), approval_handler=_refuse)
        try:
            homes.prepare(self.home)
            self._signature = homes.signature(self.home)
            client.start()
            client.initialize()
        except (CodexError, OSError) as error:
            _close(client)
            raise not_started(error) from error
        log.info("Codex' process was started", extra={"context": {"home": str(self.home)}})
        return client

    def _config(self) -> CodexConfig:
        switches = QUIET | (CHAT_ONLY if self.home == homes.main_home() else {})
        environment = dict.fromkeys(OURS, "")
        environment |= {"CODEX_HOME": str(self.home), TOKEN_VARIABLE: config().mcp_token}
        environment |= dict.fromkeys(("NO_PROXY", "no_proxy"), _without_proxy())
        return CodexConfig(
            config_overrides=tuple(f"{name}={value}" for name, value in switches.items()),
            env=environment,
            client_name="codeinfo",
            client_title="codeinfo",
        )

    def _end(self, client: CodexClient) -> None:
        with self._starting:
            if self._client is client:
                self._client = None
        _close(client)


class Settings(BaseModel):
    """Of the settings in force, what matters here."""

    model: str | None = None
    model_provider: str | None = None


class _SettingsRead(BaseModel):
    config: Settings


def settings_of(client: CodexClient) -> Settings:
    """Raises CodexError where config.toml cannot be read."""
    return client.request("config/read", {}, response_model=_SettingsRead).config


def _without_proxy() -> str:
    """The hosts that are reached without a proxy, our own endpoint's among them."""
    own = urlsplit(config().mcp_url).hostname or ""
    return ",".join(filter(None, (getproxies_environment().get("no", ""), own)))


def _refuse(method: str, params: Any) -> dict[str, Any]:
    """Nobody is there to approve anything; the SDK's own handler would say yes."""
    return {"decision": "decline"}


def _close(client: CodexClient) -> None:
    process = client._proc
    try:
        client.close()
    except OSError as error:
        # Its pipe is broken, which is why it is being closed.
        log.debug("Codex' process had gone: %s", error)
    if process is not None:
        # What the SDK leaves open.
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


_servers: dict[Path, AppServer] = {}


def server_at(home: Path) -> AppServer:
    """The one server of a home."""
    return _servers.setdefault(home, AppServer(home))


@atexit.register
def close_all() -> None:
    """End every process; the next request starts it anew."""
    for server in list(_servers.values()):
        server.close()
