"""The clients that `codeinfo install` knows, for the command, the Connect page, docs and tests."""

from pathlib import Path
from typing import Any

from codeinfo_cli.clients.client import Client, Format, Instructions, Machine
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


def _claude_folder(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", ".claude")


def _claude_config(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR") / ".claude.json"


def _codex_folder(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", ".codex")


def _copilot_folder(machine: Machine) -> Path:
    return machine.folder("COPILOT_HOME", ".copilot")


def _roo_folder(machine: Machine) -> Path:
    return machine.editors / "Code/User/globalStorage/rooveterinaryinc.roo-cline"


def _first(folder: Path, name: str, other: str) -> Path:
    """The file `other` if it exists, otherwise `name`."""
    return folder / (other if (folder / other).exists() else name)


def _vs_code(id: str, label: str, folder: str, known_as: str, *programs: str) -> Client:
    """VS Code, and what is built from its sources.

    https://code.visualstudio.com/docs/copilot/chat/mcp-servers
    """
    return Client(
        id,
        label,
        lambda on: on.editors / folder / "User/mcp.json",
        lambda on: on.editors / folder,
        "servers",
        _typed,
        (known_as,),
        programs,
        format="JSON with comments",
        instructions=Instructions(
            "rule", lambda on: on.editors / folder / "User/prompts/codeinfo.instructions.md"
        ),
    )


def _project(id: str, label: str, path: str, key: str) -> Client:
    form: Format = "JSON with comments" if key == "servers" else "JSON"
    return Client(
        id, label, lambda on: on.home / path, lambda on: on.home, key, _typed, (), format=form
    )


CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-code",
        "Claude Code",
        _claude_config,
        _claude_folder,
        "mcpServers",
        _typed,
        ("claude-code", "claude code"),
        ("claude",),
        instructions=Instructions(
            "skill", lambda on: _claude_folder(on) / "skills/codeinfo/SKILL.md"
        ),
        aliases=("claude",),
    ),
    Client(
        "codex",
        "Codex",
        lambda on: _codex_folder(on) / "config.toml",
        _codex_folder,
        "mcp_servers",
        _codex,
        ("codex",),
        ("codex",),
        format="TOML",
        instructions=Instructions("section", lambda on: _codex_folder(on) / "AGENTS.md"),
    ),
    Client(
        "cursor",
        "Cursor",
        lambda on: on.home / ".cursor/mcp.json",
        lambda on: on.home / ".cursor",
        "mcpServers",
        _typed,
        ("cursor",),
        ("cursor",),
        instructions=Instructions("skill", lambda on: on.home / ".cursor/skills/codeinfo/SKILL.md"),
    ),
    Client(
        "vs-code",
        "VS Code",
        lambda on: on.editors / "Code/User/mcp.json",
        lambda on: on.editors / "Code",
        "servers",
        _typed,
        ("visual studio code", "vscode"),
        ("code",),
        format="JSON with comments",
        instructions=Instructions(
            "rule", lambda on: on.editors / "Code/User/prompts/codeinfo.instructions.md"
        ),
        aliases=("vscode", "code"),
    ),
    Client(
        "lm-studio",
        "LM Studio",
        lambda on: on.home / ".lmstudio/mcp.json",
        lambda on: on.home / ".lmstudio",
        "mcpServers",
        _entry,
        ("lm-studio", "lmstudio", "lm studio"),
        ("lms",),
        aliases=("lmstudio",),
    ),
    Client(
        "gemini-cli",
        "Gemini CLI",
        lambda on: on.home / ".gemini/settings.json",
        lambda on: on.home / ".gemini",
        "mcpServers",
        _gemini,
        ("gemini",),
        ("gemini",),
        format="JSON with comments",
        instructions=Instructions("section", lambda on: on.home / ".gemini/GEMINI.md"),
        aliases=("gemini",),
    ),
    Client(
        "opencode",
        "opencode",
        lambda on: _first(on.config / "opencode", "opencode.json", "opencode.jsonc"),
        lambda on: on.config / "opencode",
        "mcp",
        _opencode,
        ("opencode",),
        ("opencode",),
        format="JSON with comments",
        instructions=Instructions("section", lambda on: on.config / "opencode/AGENTS.md"),
    ),
    Client(
        "zed",
        "Zed",
        lambda on: on.config / "zed/settings.json",
        lambda on: on.config / "zed",
        "context_servers",
        _entry,
        ("zed",),
        ("zed", "zeditor"),
        format="JSON with comments",
    ),
    Client(
        "windsurf",
        "Windsurf",
        lambda on: on.home / ".codeium/windsurf/mcp_config.json",
        lambda on: on.home / ".codeium/windsurf",
        "mcpServers",
        _entry,
        ("windsurf",),
        ("windsurf",),
        instructions=Instructions(
            "section", lambda on: on.home / ".codeium/windsurf/memories/global_rules.md"
        ),
    ),
    Client(
        # https://docs.github.com/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers
        "copilot-cli",
        "Copilot CLI",
        lambda on: _copilot_folder(on) / "mcp-config.json",
        _copilot_folder,
        "mcpServers",
        _copilot,
        ("copilot", "github-copilot"),
        ("copilot",),
        instructions=Instructions(
            "section", lambda on: _copilot_folder(on) / "copilot-instructions.md"
        ),
        aliases=("copilot",),
    ),
    Client(
        # https://docs.cline.bot/mcp/mcp-overview: the extension and the command share it
        "cline",
        "Cline",
        lambda on: on.home / ".cline/data/settings/cline_mcp_settings.json",
        lambda on: on.home / ".cline",
        "mcpServers",
        _patient,
        ("cline",),
        ("cline",),
    ),
    Client(
        # https://kiro.dev/docs/mcp/configuration/
        "kiro",
        "Kiro",
        lambda on: on.home / ".kiro/settings/mcp.json",
        lambda on: on.home / ".kiro",
        "mcpServers",
        _entry,
        ("kiro",),
        ("kiro", "kiro-cli"),
    ),
    Client(
        # https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html
        "junie",
        "Junie",
        lambda on: on.home / ".junie/mcp/mcp.json",
        lambda on: on.home / ".junie",
        "mcpServers",
        _entry,
        ("junie",),
        ("junie",),
    ),
    Client(
        # https://modelcontextprotocol.io/docs/develop/connect-local-servers
        "claude-desktop",
        "Claude Desktop",
        lambda on: on.editors / "Claude/claude_desktop_config.json",
        lambda on: on.editors / "Claude",
        "mcpServers",
        _entry,
        ("claude-ai", "claude desktop"),
    ),
    Client(
        # https://ampcode.com/manual: settings.jsonc is read, too
        "amp",
        "Amp",
        lambda on: _first(on.config / "amp", "settings.json", "settings.jsonc"),
        lambda on: on.config / "amp",
        "amp.mcpServers",
        _entry,
        ("amp",),
        ("amp",),
        format="JSON with comments",
        instructions=Instructions("section", lambda on: on.config / "amp/AGENTS.md"),
    ),
    Client(
        # https://block.github.io/goose/docs/guides/config-files
        "goose",
        "Goose",
        lambda on: on.config / "goose/config.yaml",
        lambda on: on.config / "goose",
        "extensions",
        _goose,
        ("goose",),
        ("goose",),
        format="YAML",
    ),
    Client(
        # https://docs.continue.dev/customize/deep-dives/mcp: a file of JSON for each server
        "continue",
        "Continue",
        lambda on: on.home / ".continue/mcpServers/codeinfo.json",
        lambda on: on.home / ".continue",
        "mcpServers",
        _entry,
        ("continue",),
        ("cn",),
    ),
    Client(
        # https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/
        "qwen-code",
        "Qwen Code",
        lambda on: on.home / ".qwen/settings.json",
        lambda on: on.home / ".qwen",
        "mcpServers",
        _gemini,
        ("qwen",),
        ("qwen",),
        format="JSON with comments",
        instructions=Instructions("section", lambda on: on.home / ".qwen/QWEN.md"),
        aliases=("qwen",),
    ),
    Client(
        # https://github.com/charmbracelet/crush, "Legacy JSON" of its configuration: the newer
        # crushrc is a program, which an installer cannot edit safely.
        "crush",
        "Crush",
        lambda on: on.config / "crush/crush.json",
        lambda on: on.config / "crush",
        "mcp",
        _crush,
        ("crush",),
        ("crush",),
    ),
    Client(
        # https://docs.roocode.com/features/mcp/using-mcp-in-roo
        "roo-code",
        "Roo Code",
        lambda on: _roo_folder(on) / "settings/mcp_settings.json",
        _roo_folder,
        "mcpServers",
        _patient,
        ("roo",),
        aliases=("roo",),
    ),
    Client(
        # https://kilo.ai/docs/automate/mcp/using-in-kilo-code
        "kilo-code",
        "Kilo Code",
        lambda on: _first(on.config / "kilo", "kilo.jsonc", "kilo.json"),
        lambda on: on.config / "kilo",
        "mcp",
        _opencode,
        ("kilo",),
        ("kilo",),
        format="JSON with comments",
        aliases=("kilo",),
    ),
    Client(
        # https://antigravity.google/docs/mcp: the editor and the command share it
        "antigravity",
        "Antigravity",
        lambda on: on.home / ".gemini/config/mcp_config.json",
        lambda on: on.home / ".gemini/config",
        "mcpServers",
        _entry,
        ("antigravity",),
        ("antigravity", "agy"),
    ),
    _vs_code(
        "vs-code-insiders",
        "VS Code Insiders",
        "Code - Insiders",
        "visual studio code - insiders",
        "code-insiders",
    ),
    _vs_code("vscodium", "VSCodium", "VSCodium", "vscodium", "codium"),
)

# Files in the folder of a project, which a team shares: `codeinfo install --project`.
PROJECT = (
    # https://code.claude.com/docs/en/mcp#project-scope; Copilot CLI reads it, too
    _project("project-mcp", "Claude Code", ".mcp.json", "mcpServers"),
    _project("project-vs-code", "VS Code", ".vscode/mcp.json", "servers"),
    _project("project-cursor", "Cursor", ".cursor/mcp.json", "mcpServers"),
)


def client_named(name: str) -> Client | None:
    """Return the client with this id or alias."""
    return next((one for one in CLIENTS if name in (one.id, *one.aliases)), None)
