"""How other programs reach the MCP endpoints of this server: addresses, and what to paste where.

The formats are those that each client's own documentation gives for servers over Streamable HTTP.
"""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.http.request import split_domain_port
from django.utils.safestring import SafeString

from apps.core.config import config
from apps.retrieval.highlight import highlight_lines

# The variable that a client's machine keeps the token in. Ours has the same name.
TOKEN = "CODEINFO_MCP_TOKEN"
# Codex gives up a call after a minute unless told otherwise; calls here may take ten.
CALL_SECONDS = 600


@dataclass(frozen=True)
class Endpoint:
    """One MCP server of ours. `name` is what a client's configuration calls it."""

    id: str
    title: str
    name: str
    path: str
    purpose: str
    url: str
    also_at: str = ""
    token_needed: bool = False


@dataclass(frozen=True)
class Step:
    """A sentence, and a text to copy: a command (`where` is Terminal) or the lines of a file."""

    say: str
    where: str
    text: str
    language: str

    @property
    def lines(self) -> list[SafeString]:
        return highlight_lines(self.text, language=self.language)


@dataclass(frozen=True)
class Client:
    """A program that can be pointed at an endpoint; `token` says how it comes by ours."""

    id: str
    label: str
    steps: Callable[[Endpoint], Sequence[Step]]
    token: str = f"set {TOKEN} in the environment that the client starts in."


def endpoints(request: HttpRequest) -> tuple[Endpoint, ...]:
    """Our endpoints under the name by which the browser reached this server."""
    token = bool(config().mcp_token)
    return (
        Endpoint(
            id="search",
            title="Search",
            name="codeinfo",
            path="/mcp",
            purpose="Your agent searches the code and writes the answer itself.",
            url=request.build_absolute_uri("/mcp"),
            token_needed=token,
        ),
        Endpoint(
            id="question",
            title="Question",
            name="codeinfo-question",
            path="/mcp/chat",
            purpose="codeinfo searches and writes the answer, with its citations.",
            url=request.build_absolute_uri("/mcp/chat"),
            also_at=_at_port(request, config().mcp_port),
            token_needed=token,
        ),
        Endpoint(
            id="agents",
            title="Agents",
            name="codeinfo-agents",
            path="/mcp/agents",
            purpose="Agents kept here carry out instructions, and commands in several steps.",
            url=request.build_absolute_uri("/mcp/agents"),
            also_at=_at_port(request, config().agents_mcp_port),
            token_needed=token,
        ),
    )


def _at_port(request: HttpRequest, port: int) -> str:
    domain, _ = split_domain_port(request.get_host())
    return f"{request.scheme}://{domain}:{port}/"


def _codex(endpoint: Endpoint) -> Sequence[Step]:
    token = ["--bearer-token-env-var", TOKEN] if endpoint.token_needed else []
    command = ["codex", "mcp", "add", endpoint.name, "--url", endpoint.url, *token]
    table = [f"[mcp_servers.{endpoint.name}]", f'url = "{endpoint.url}"']
    if endpoint.token_needed:
        table.append(f'bearer_token_env_var = "{TOKEN}"')
    table.append(f"tool_timeout_sec = {CALL_SECONDS}")
    return (
        _command("Run this once. It writes the server into your Codex configuration.", command),
        Step(
            "Or write it into the file, with time for long calls:",
            "~/.codex/config.toml",
            "\n".join(table),
            "toml",
        ),
    )


def _claude_code(endpoint: Endpoint) -> Sequence[Step]:
    command = shlex.join(
        ["claude", "mcp", "add", "--transport", "http", endpoint.name, endpoint.url]
    )
    if endpoint.token_needed:
        command += f' --header "Authorization: Bearer ${TOKEN}"'
    entry = {"type": "http"} | _entry(endpoint, f"${{{TOKEN}}}")
    return (
        Step("Run this once, in your project.", "Terminal", command, "bash"),
        _file("Or share it with the project:", ".mcp.json", {"mcpServers": {endpoint.name: entry}}),
    )


def _cursor(endpoint: Endpoint) -> Sequence[Step]:
    servers = {endpoint.name: _entry(endpoint, f"${{env:{TOKEN}}}")}
    say = "Add the server for all projects, or to a project's own .cursor/mcp.json."
    return (_file(say, "~/.cursor/mcp.json", {"mcpServers": servers}),)


def _vs_code(endpoint: Endpoint) -> Sequence[Step]:
    entry = {"type": "http"} | _entry(endpoint, "${input:codeinfo-token}")
    config: dict[str, Any] = {"servers": {endpoint.name: entry}}
    if endpoint.token_needed:
        # VS Code asks once and keeps the answer out of the file.
        config["inputs"] = [
            {
                "type": "promptString",
                "id": "codeinfo-token",
                "description": "Token of codeinfo's MCP endpoints",
                "password": True,
            }
        ]
    say = "Add the server to the workspace, or open “MCP: Open User Configuration” for all of them."
    return (_file(say, ".vscode/mcp.json", config),)


def _lm_studio(endpoint: Endpoint) -> Sequence[Step]:
    servers = {endpoint.name: _entry(endpoint, "YOUR_TOKEN")}
    say = "In the Program tab choose Install, then “Edit mcp.json”, and add the server."
    return (_file(say, "mcp.json", {"mcpServers": servers}),)


CLIENTS = (
    Client("codex", "Codex", _codex),
    Client("claude-code", "Claude Code", _claude_code),
    Client("cursor", "Cursor", _cursor),
    Client("vs-code", "VS Code", _vs_code, "VS Code asks for it once and keeps it."),
    Client("lm-studio", "LM Studio", _lm_studio, "put it in place of YOUR_TOKEN."),
)


def _entry(endpoint: Endpoint, token: str) -> dict[str, Any]:
    """The address, and the header where one is needed, `token` in the client's own spelling."""
    headers = {"headers": {"Authorization": f"Bearer {token}"}} if endpoint.token_needed else {}
    return {"url": endpoint.url, **headers}


def _command(say: str, words: Sequence[str]) -> Step:
    return Step(say, "Terminal", shlex.join(words), "bash")


def _file(say: str, where: str, content: Mapping[str, Any]) -> Step:
    return Step(say, where, json.dumps(content, indent=2, ensure_ascii=False), "json")
