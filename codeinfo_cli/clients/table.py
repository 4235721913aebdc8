"""The clients that `codeinfo install` knows, for the command, the Connect page, docs and tests."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from codeinfo_cli.clients.launch import Launch

NAME = "codeinfo"
# The longest call is 10 minutes; a first start takes up to two.
CALL_SECONDS, START_SECONDS = 600, 120


@dataclass(frozen=True)
class Machine:
    """Where a user's files are."""

    home: Path
    is_mac: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    path: str = ""  # of programs, as $PATH

    def folder(self, variable: str, *default: str) -> Path:
        """The folder that an environment variable names, or one below the home folder."""
        named = self.environ.get(variable, "")
        return Path(named).expanduser() if named else self.home.joinpath(*default)

    @property
    def config(self) -> Path:
        return self.folder("XDG_CONFIG_HOME", ".config")

    @property
    def editors(self) -> Path:
        """Where VS Code has its folder."""
        return self.home / "Library/Application Support" if self.is_mac else self.config


def this_machine() -> Machine:
    """Raises RuntimeError for a user without a home folder."""
    path = os.environ.get("PATH", "")
    return Machine(Path.home(), sys.platform == "darwin", dict(os.environ), path)


@dataclass(frozen=True)
class Instructions:
    """A file that tells the client's model to use the tools.

    kind: "skill" and "rule" are a file of ours; "section" is a part of a file of the user.
    """

    kind: Literal["skill", "rule", "section"]
    path: Callable[[Machine], Path]


@dataclass(frozen=True)
class Client:
    """An MCP client.

    config: its file with MCP servers.
    key: the object in that file whose members are servers.
    entry: the member for codeinfo.
    programs, folder: it is on this machine if a program or the folder is there.
    known_as: how the names begin that it gives itself in MCP (`clientInfo`), in lower case.
    """

    id: str
    label: str
    config: Callable[[Machine], Path]
    folder: Callable[[Machine], Path]
    key: str
    entry: Callable[[Launch], dict[str, Any]]
    known_as: tuple[str, ...]
    programs: tuple[str, ...] = ()
    format: Literal["JSON", "JSON with comments", "TOML"] = "JSON"
    instructions: Instructions | None = None
    aliases: tuple[str, ...] = ()

    def is_on(self, machine: Machine) -> bool:
        return self.folder(machine).is_dir() or any(
            shutil.which(program, path=machine.path) for program in self.programs
        )


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


def _claude_folder(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR", ".claude")


def _claude_config(machine: Machine) -> Path:
    return machine.folder("CLAUDE_CONFIG_DIR") / ".claude.json"


def _codex_folder(machine: Machine) -> Path:
    return machine.folder("CODEX_HOME", ".codex")


def _opencode_config(machine: Machine) -> Path:
    folder = machine.config / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


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
        _opencode_config,
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
)


def client_named(name: str) -> Client | None:
    """Return the client with this id or alias."""
    return next((one for one in CLIENTS if name in (one.id, *one.aliases)), None)
