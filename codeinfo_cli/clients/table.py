"""The clients that `codeinfo install` knows, for the command, the Connect page, docs and tests."""

from typing import Any

from codeinfo_cli.clients.client import Client, Format, Instructions
from codeinfo_cli.clients.launch import Launch

# The longest call is 10 minutes; a first start takes up to two.
CALL_SECONDS, START_SECONDS = 600, 120


def _entry(launch: Launch, **further: Any) -> dict[str, Any]:
    env = {"env": launch.env} if launch.env else {}
    return {"command": launch.command, "args": list(launch.args), **env, **further}


def _typed(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio"} | _entry(launch)


def _codex(launch: Launch) -> dict[str, Any]:
    return _entry(launch, startup_timeout_sec=START_SECONDS, tool_timeout_sec=CALL_SECONDS)


def _gemini(launch: Launch) -> dict[str, Any]:
    return _entry(launch, timeout=CALL_SECONDS * 1000)


def _opencode(launch: Launch) -> dict[str, Any]:
    env = {"environment": launch.env} if launch.env else {}
    entry = {"type": "local", "command": [launch.command, *launch.args], "enabled": True}
    return entry | env | {"timeout": START_SECONDS * 1000}


def _copilot(launch: Launch) -> dict[str, Any]:
    return {"type": "local"} | _entry(launch, tools=["*"])


def _patient(launch: Launch) -> dict[str, Any]:
    return _entry(launch, timeout=CALL_SECONDS)


def _crush(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio"} | _patient(launch)


def _goose(launch: Launch) -> dict[str, Any]:
    entry = {"enabled": True, "type": "stdio", "name": "codeinfo", "cmd": launch.command}
    return entry | {"args": [*launch.args], "envs": launch.env, "timeout": CALL_SECONDS}


COMMENTED: Format = "JSON with comments"
AGENTS = Instructions("section", "AGENTS.md")
SKILL = Instructions("skill", "skills/codeinfo/SKILL.md")


def _vs_code(id: str, label: str, folder: str, *programs: str, **names: Any) -> Client:
    """VS Code, and what is built from its sources.

    https://code.visualstudio.com/docs/copilot/chat/mcp-servers
    """
    rule = Instructions("rule", "User/prompts/codeinfo.instructions.md")
    place, file = f"{{editors}}/{folder}", "User/mcp.json"
    return Client(
        id, label, place, file, _typed, programs, "servers", COMMENTED, instructions=rule, **names
    )


# fmt: off
CLIENTS: tuple[Client, ...] = (
    Client("claude-code", "Claude Code", "{claude}", "{claude_or_home}/.claude.json", _typed,
           ("claude",),
           known_as=("claude-code", "claude code"), aliases=("claude",), instructions=SKILL),
    Client("codex", "Codex", "{codex}", "config.toml", _codex, ("codex",), "mcp_servers", "TOML",
           instructions=AGENTS),
    Client("cursor", "Cursor", "{home}/.cursor", "mcp.json", _typed, ("cursor",),
           instructions=SKILL),
    _vs_code("vs-code", "VS Code", "Code", "code",
             known_as=("visual studio code", "vscode"), aliases=("vscode", "code")),
    Client("lm-studio", "LM Studio", "{home}/.lmstudio", "mcp.json", _entry, ("lms",),
           known_as=("lm-studio", "lmstudio", "lm studio"), aliases=("lmstudio",)),
    Client("gemini-cli", "Gemini CLI", "{home}/.gemini", "settings.json", _gemini, ("gemini",),
           format=COMMENTED, known_as=("gemini",), aliases=("gemini",),
           instructions=Instructions("section", "GEMINI.md")),
    Client("opencode", "opencode", "{config}/opencode", "opencode.json", _opencode, ("opencode",),
           "mcp", COMMENTED, instructions=AGENTS, other="opencode.jsonc"),
    Client("zed", "Zed", "{config}/zed", "settings.json", _entry, ("zed", "zeditor"),
           "context_servers", COMMENTED),
    Client("windsurf", "Windsurf", "{home}/.codeium/windsurf", "mcp_config.json", _entry,
           ("windsurf",), instructions=Instructions("section", "memories/global_rules.md")),
    # https://docs.github.com/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
    Client("copilot-cli", "Copilot CLI", "{copilot}", "mcp-config.json", _copilot, ("copilot",),
           known_as=("copilot", "github-copilot"), aliases=("copilot",),
           instructions=Instructions("section", "copilot-instructions.md")),
    # https://docs.cline.bot/mcp/mcp-overview: the extension and the command share it
    Client("cline", "Cline", "{home}/.cline", "data/settings/cline_mcp_settings.json", _patient,
           ("cline",)),
    # https://kiro.dev/docs/mcp/configuration/
    Client("kiro", "Kiro", "{home}/.kiro", "settings/mcp.json", _entry, ("kiro", "kiro-cli")),
    # https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html
    Client("junie", "Junie", "{home}/.junie", "mcp/mcp.json", _entry, ("junie",)),
    # https://modelcontextprotocol.io/docs/develop/connect-local-servers
    Client("claude-desktop", "Claude Desktop", "{editors}/Claude", "claude_desktop_config.json",
           _entry, known_as=("claude-ai", "claude desktop")),
    # https://ampcode.com/manual: settings.jsonc is read, too
    Client("amp", "Amp", "{config}/amp", "settings.json", _entry, ("amp",), "amp.mcpServers",
           COMMENTED, instructions=AGENTS, other="settings.jsonc"),
    # https://block.github.io/goose/docs/guides/config-files
    Client("goose", "Goose", "{config}/goose", "config.yaml", _goose, ("goose",), "extensions",
           "YAML"),
    # https://docs.continue.dev/customize/deep-dives/mcp: a file of JSON for each server
    Client("continue", "Continue", "{home}/.continue", "mcpServers/codeinfo.json", _entry, ("cn",)),
    # https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/
    Client("qwen-code", "Qwen Code", "{home}/.qwen", "settings.json", _gemini, ("qwen",),
           format=COMMENTED,
           known_as=("qwen",), aliases=("qwen",), instructions=Instructions("section", "QWEN.md")),
    # https://github.com/charmbracelet/crush, "Legacy JSON" of its configuration: the newer
    # crushrc is a program, which an installer cannot edit safely.
    Client("crush", "Crush", "{config}/crush", "crush.json", _crush, ("crush",), "mcp"),
    # https://docs.roocode.com/features/mcp/using-mcp-in-roo
    Client("roo-code", "Roo Code", "{editors}/Code/User/globalStorage/rooveterinaryinc.roo-cline",
           "settings/mcp_settings.json", _patient, known_as=("roo",), aliases=("roo",)),
    # https://kilo.ai/docs/automate/mcp/using-in-kilo-code
    Client("kilo-code", "Kilo Code", "{config}/kilo", "kilo.jsonc", _opencode, ("kilo",), "mcp",
           COMMENTED, known_as=("kilo",), aliases=("kilo",), other="kilo.json"),
    # https://antigravity.google/docs/mcp: the editor and the command share it
    Client("antigravity", "Antigravity", "{home}/.gemini/config", "mcp_config.json", _entry,
           ("antigravity", "agy")),
    _vs_code("vs-code-insiders", "VS Code Insiders", "Code - Insiders", "code-insiders",
             known_as=("visual studio code - insiders",)),
    _vs_code("vscodium", "VSCodium", "VSCodium", "codium"),
)
# Files in the folder of a project, which a team shares: `codeinfo install --project`.
PROJECT = (
    # https://code.claude.com/docs/en/mcp#project-scope; Copilot CLI reads it, too
    Client("project-mcp", "Claude Code", "{home}", ".mcp.json", _typed),
    Client("project-vs-code", "VS Code", "{home}", ".vscode/mcp.json", _typed, (), "servers",
           COMMENTED),
    Client("project-cursor", "Cursor", "{home}", ".cursor/mcp.json", _typed),
)
# fmt: on


def client_named(name: str) -> Client | None:
    """Return the client with this id or alias."""
    return next((one for one in CLIENTS if name in (one.id, *one.aliases)), None)
