"""The processes of Codex (`codex app-server`), one for each home.

A process starts on first use and restarts after a crash or a login outside codeinfo. It ends with
this process, because its standard input closes. All functions block.
"""

import atexit
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from openai_codex import client as sdk
from openai_codex.client import CodexClient, CodexConfig
from openai_codex.errors import CodexError, TransportClosedError
from pydantic import BaseModel

from apps.agents.providers.codex import home as homes
from apps.agents.providers.codex import work_folder
from apps.agents.providers.codex.failures import not_started
from apps.agents.providers.codex.process import SUBPROCESS
from apps.agents.providers.codex.sandbox import OVERRIDES
from apps.core.config import config, variable_names

log = logging.getLogger("codeinfo.agents")

T = TypeVar("T")

# The SDK starts the process by itself.
sdk.subprocess = SUBPROCESS  # type: ignore[attr-defined, assignment]

CONNECTION_ERRORS = (TransportClosedError, OSError)


class AppServer:
    """The process of one home. Thread-safe."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._starting = threading.Lock()
        self.client: CodexClient | None = None
        self._signature: tuple[int, ...] = ()

    @property
    def stale(self) -> bool:
        """True if the home's files have changed since the process started."""
        return self.client is not None and self._signature != homes.signature(self.home)

    def call(self, request: Callable[[CodexClient], T]) -> T:
        """Call `request` with a client; call it again, once, if the process was dead.

        `request` must be safe to repeat. Raises Unavailable if the process does not start, and the
        SDK's errors.
        """
        client = self._ensure_client()
        try:
            return request(client)
        except CONNECTION_ERRORS as error:
            self.discard(client, error)
        return request(self._ensure_client())

    def discard(self, client: CodexClient, error: Exception) -> None:
        """Close the dead process of `client`; the next call starts another."""
        if self.client is client:  # otherwise we have ended it, such as at our own end
            log.warning("Codex' process was lost: %s", type(error).__name__)
        self._shut_down(client)

    def close(self) -> None:
        """End the process; the next call starts another."""
        if self.client is not None:
            self._shut_down(self.client)

    def _ensure_client(self) -> CodexClient:
        with self._starting:
            if self.client is None:
                self.client = self._start()
            return self.client

    def _start(self) -> CodexClient:
        client = CodexClient(self._config(), approval_handler=_decline)
        try:
            homes.prepare(self.home)
            work_folder.sweep()
            self._signature = homes.signature(self.home)
            client.start()
            client.initialize()
        except (CodexError, OSError) as error:
            _close(client)
            raise not_started(error) from error
        log.info("Codex' process was started", extra={"context": {"home": str(self.home)}})
        return client

    def _config(self) -> CodexConfig:
        # Not ours, which contain secrets.
        environment = dict.fromkeys(variable_names(), "")
        environment |= {"CODEX_HOME": str(self.home), "CODEINFO_MCP_TOKEN": config().mcp_token}
        environment |= dict.fromkeys(("NO_PROXY", "no_proxy"), _no_proxy_hosts())
        return CodexConfig(
            config_overrides=tuple(f"{name}={value}" for name, value in OVERRIDES.items()),
            env=environment,
            client_name="codeinfo",
            client_title="codeinfo",
        )

    def _shut_down(self, client: CodexClient) -> None:
        with self._starting:
            if self.client is client:
                self.client = None
        _close(client)


class EffectiveConfig(BaseModel):
    """The used part of Codex's effective settings."""

    model: str | None = None
    model_provider: str | None = None
    mcp_servers: dict[str, Any] = {}


class _ConfigResponse(BaseModel):
    config: EffectiveConfig


def effective_config(client: CodexClient) -> EffectiveConfig:
    """Read the effective settings. Raises CodexError if config.toml cannot be parsed."""
    return client.request("config/read", {}, response_model=_ConfigResponse).config


def _no_proxy_hosts() -> str:
    """Return NO_PROXY with the host of our MCP endpoint added."""
    own = urlsplit(config().mcp_url).hostname or ""
    return ",".join(filter(None, (getproxies_environment().get("no", ""), own)))


def _decline(method: str, params: Any) -> dict[str, Any]:
    """Decline every approval: no user can answer, and the SDK's default handler would accept."""
    return {"decision": "decline"}


def _close(client: CodexClient) -> None:
    process = client._proc
    try:
        client.close()
    except OSError as error:
        # The pipe is already broken.
        log.debug("Codex' process had gone: %s", error)
    if process is not None:
        # The SDK leaves these open.
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


_servers: dict[Path, AppServer] = {}


def server_at(home: Path) -> AppServer:
    """Return the server of a home; there is one for each."""
    return _servers.setdefault(home, AppServer(home))


@atexit.register
def close_all() -> None:
    """End every process. The next call starts another."""
    for server in list(_servers.values()):
        server.close()
