"""What is known of an MCP client, and where a user's files are."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from codeinfo_cli.clients.launch import Launch

Format = Literal["JSON", "JSON with comments", "TOML", "YAML"]
NAME = "codeinfo"


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

    def at(self, text: str) -> Path:
        """The path of a text that begins with one of these folders, such as `{config}/zed`."""
        config = self.folder("XDG_CONFIG_HOME", ".config")
        return Path(
            text.format(
                home=self.home,
                config=config,
                editors=self.home / "Library/Application Support" if self.is_mac else config,
                claude=self.folder("CLAUDE_CONFIG_DIR", ".claude"),
                claude_or_home=self.folder("CLAUDE_CONFIG_DIR"),
                codex=self.folder("CODEX_HOME", ".codex"),
                copilot=self.folder("COPILOT_HOME", ".copilot"),
            )
        )


def this_machine() -> Machine:
    """Raises RuntimeError for a user without a home folder."""
    path = os.environ.get("PATH", "")
    return Machine(Path.home(), sys.platform == "darwin", dict(os.environ), path)


@dataclass(frozen=True)
class Instructions:
    """A file that tells the client's model to use the tools.

    kind: "skill" and "rule" are a file of ours; "section" is a part of a file of the user.
    name: in the client's folder.
    """

    kind: Literal["skill", "rule", "section"]
    name: str


@dataclass(frozen=True)
class Client:
    """An MCP client.

    place: its folder (`Machine.at`); file: that with MCP servers, in the folder or anywhere.
    entry: the member for codeinfo.
    key: the object in that file whose members are servers.
    programs: it is on this machine if one of them or the folder is there.
    known_as: how the names begin that it gives itself in MCP (`clientInfo`), in lower case; empty:
        as its id.
    other: a file of the folder that comes before `file` if it exists.
    """

    id: str
    label: str
    place: str
    file: str
    entry: Callable[[Launch], dict[str, Any]]
    programs: tuple[str, ...] = ()
    key: str = "mcpServers"
    format: Format = "JSON"
    known_as: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    instructions: Instructions | None = None
    other: str = ""

    def folder(self, machine: Machine) -> Path:
        return machine.at(self.place)

    def config(self, machine: Machine) -> Path:
        other = self.folder(machine) / self.other
        if self.other and other.exists():
            return other
        is_elsewhere = self.file.startswith("{")
        return machine.at(self.file) if is_elsewhere else self.folder(machine) / self.file

    def instructions_on(self, machine: Machine) -> Path:
        """Where the file of `instructions` is."""
        assert self.instructions is not None
        return self.folder(machine) / self.instructions.name

    def is_on(self, machine: Machine) -> bool:
        return self.folder(machine).is_dir() or any(
            shutil.which(program, path=machine.path) for program in self.programs
        )
