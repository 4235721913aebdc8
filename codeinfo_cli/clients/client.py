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
    format: Format = "JSON"
    instructions: Instructions | None = None
    aliases: tuple[str, ...] = ()

    def is_on(self, machine: Machine) -> bool:
        return self.folder(machine).is_dir() or any(
            shutil.which(program, path=machine.path) for program in self.programs
        )
