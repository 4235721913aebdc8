"""Instructions to connect MCP clients to this server: URLs, commands and configuration files.

The formats follow each client's documentation for servers over Streamable HTTP.
"""

import base64
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from django.http import HttpRequest
from django.http.request import split_domain_port
from django.utils.safestring import SafeString

from apps.browse.highlight import highlight_lines
from apps.core.config import config
from codeinfo_cli.clients.launch import Launch
from codeinfo_cli.clients.table import client_named

# The environment variable for the token on the client's machine, named as the server's.
TOKEN = "CODEINFO_MCP_TOKEN"
# Timeout of calls. Codex' default is a minute; calls of codeinfo may take ten.
CALL_SECONDS = 600


@dataclass(frozen=True)
class Endpoint:
    """An MCP endpoint of this server."""

    id: str
    title: str
    name: str  # in a client's configuration
    path: str
    purpose: str
    url: str
    also_at: str = ""  # its URL on a port of its own
    token_needed: bool = False


@dataclass(frozen=True)
class SetupStep:
    """An instruction with a text to copy: a command, or the content of a file."""

    instruction: str
    where: str  # "Terminal", or the path of the file
    text: str
    language: str  # for highlighting

    @property
    def lines(self) -> list[SafeString]:
        return highlight_lines(self.text, language=self.language)


@dataclass(frozen=True)
class McpClient:
    """An MCP client."""

    id: str
    label: str
    steps: Callable[[Endpoint], Sequence[SetupStep]]
    # A link that opens the client with an entry for this server to accept.
    link: Callable[[str, Mapping[str, Any]], str] | None = None
    # How the client gets the token.
    token: str = f"set {TOKEN} in the environment that the client starts in."


def endpoints(request: HttpRequest) -> tuple[Endpoint, ...]:
    """Return the endpoints, with the host name that the browser uses."""
    endpoint = partial(Endpoint, token_needed=bool(config().mcp_token))
    return (
        endpoint(
            id="search",
            title="Search",
            name="codeinfo",
            path="/mcp",
            purpose="Your agent searches the code and writes the answer itself.",
            url=request.build_absolute_uri("/mcp"),
        ),
        endpoint(
            id="question",
            title="Question",
            name="codeinfo-question",
            path="/mcp/chat",
            purpose="codeinfo searches and writes the answer, with its citations.",
            url=request.build_absolute_uri("/mcp/chat"),
            also_at=_at_port(request, config().mcp_port),
        ),
        endpoint(
            id="agents",
            title="Agents",
            name="codeinfo-agents",
            path="/mcp/agents",
            purpose="Agents kept here carry out instructions, and commands in several steps.",
            url=request.build_absolute_uri("/mcp/agents"),
            also_at=_at_port(request, config().agents_mcp_port),
        ),
    )


def _at_port(request: HttpRequest, port: int) -> str:
    domain, _ = split_domain_port(request.get_host())
    return f"{request.scheme}://{domain}:{port}/"


def _codex(endpoint: Endpoint) -> Sequence[SetupStep]:
    token = ["--bearer-token-env-var", TOKEN] if endpoint.token_needed else []
    command = ["codex", "mcp", "add", endpoint.name, "--url", endpoint.url, *token]
    table = [f"[mcp_servers.{endpoint.name}]", f'url = "{endpoint.url}"']
    if endpoint.token_needed:
        table.append(f'bearer_token_env_var = "{TOKEN}"')
    table.append(f"tool_timeout_sec = {CALL_SECONDS}")
    return (
        _command("Run this once. It writes the server into your Codex configuration.", command),
        SetupStep(
            "Or write it into the file, with time for long calls:",
            "~/.codex/config.toml",
            "\n".join(table),
            "toml",
        ),
    )


def _claude_code(endpoint: Endpoint) -> Sequence[SetupStep]:
    command = shlex.join(
        ["claude", "mcp", "add", "--transport", "http", endpoint.name, endpoint.url]
    )
    if endpoint.token_needed:
        command += f' --header "Authorization: Bearer ${TOKEN}"'
    entry = {"type": "http"} | _entry(endpoint, f"${{{TOKEN}}}")
    return (
        SetupStep("Run this once, in your project.", "Terminal", command, "bash"),
        _file("Or share it with the project:", ".mcp.json", {"mcpServers": {endpoint.name: entry}}),
    )


def _cursor(endpoint: Endpoint) -> Sequence[SetupStep]:
    servers = {endpoint.name: _entry(endpoint, f"${{env:{TOKEN}}}")}
    instruction = "Add the server for all projects, or to a project's own .cursor/mcp.json."
    return (_file(instruction, "~/.cursor/mcp.json", {"mcpServers": servers}),)


def _vs_code(endpoint: Endpoint) -> Sequence[SetupStep]:
    entry = {"type": "http"} | _entry(endpoint, "${input:codeinfo-token}")
    config: dict[str, Any] = {"servers": {endpoint.name: entry}}
    if endpoint.token_needed:
        # VS Code asks the user once, and stores the token outside the file.
        config["inputs"] = [
            {
                "type": "promptString",
                "id": "codeinfo-token",
                "description": "Token of codeinfo's MCP endpoints",
                "password": True,
            }
        ]
    instruction = (
        "Add the server to the workspace, or open “MCP: Open User Configuration” for all of them."
    )
    return (_file(instruction, ".vscode/mcp.json", config),)


def _lm_studio(endpoint: Endpoint) -> Sequence[SetupStep]:
    servers = {endpoint.name: _entry(endpoint, "YOUR_TOKEN")}
    instruction = "In the Program tab choose Install, then “Edit mcp.json”, and add the server."
    return (_file(instruction, "mcp.json", {"mcpServers": servers}),)


def _cursor_link(name: str, entry: Mapping[str, Any]) -> str:
    config = base64.b64encode(json.dumps(entry).encode()).decode()
    query = f"name={quote(name)}&config={quote(config, safe='')}"
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"


def _vs_code_link(name: str, entry: Mapping[str, Any]) -> str:
    return f"vscode:mcp/install?{quote(json.dumps({'name': name, **entry}), safe='')}"


def install_link(client: McpClient, endpoint: Endpoint, launch: Launch | None) -> str:
    """Return the client's one-click link; "" if it has none, or needs a token.

    launch: the command of this installation, if the client is on this machine: it starts codeinfo
        when needed
    """
    if client.link is None:
        return ""
    if launch is not None and endpoint.path == "/mcp":
        known = client_named(client.id)
        assert known is not None, "the installer knows every client with a link"
        return client.link(endpoint.name, known.entry(launch))
    if endpoint.token_needed:
        return ""
    return client.link(endpoint.name, {"type": "http", "url": endpoint.url})


CLIENTS = (
    McpClient("codex", "Codex", _codex),
    McpClient("claude-code", "Claude Code", _claude_code),
    McpClient("cursor", "Cursor", _cursor, _cursor_link),
    McpClient(
        "vs-code", "VS Code", _vs_code, _vs_code_link, "VS Code asks for it once and keeps it."
    ),
    McpClient("lm-studio", "LM Studio", _lm_studio, token="put it in place of YOUR_TOKEN."),
)


def _entry(endpoint: Endpoint, token: str) -> dict[str, Any]:
    """Return the URL, and the header if a token is needed. `token`: the client's reference to the
    variable."""
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if endpoint.token_needed else {}
    return {"url": endpoint.url, **headers}


def _command(instruction: str, words: Sequence[str]) -> SetupStep:
    return SetupStep(instruction, "Terminal", shlex.join(words), "bash")


def _file(instruction: str, where: str, content: Mapping[str, Any]) -> SetupStep:
    return SetupStep(instruction, where, json.dumps(content, indent=2, ensure_ascii=False), "json")
