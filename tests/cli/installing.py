"""`codeinfo install` on a machine of a test."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from codeinfo_cli.clients import installing
from codeinfo_cli.clients.client import Client, Machine
from codeinfo_cli.clients.launch import Launch
from codeinfo_cli.main import main

LAUNCH = Launch("/opt/codeinfo", ("mcp",), {"CODEINFO_DATA_DIR": "/data ü"})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    home = tmp_path / "home"
    home.mkdir()
    return Machine(home)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def install(client: Client, machine: Machine, data: Path, launch: Launch = LAUNCH) -> int:
    changes = installing.plan_install(client, machine, launch)
    installing.make(changes, client, data)
    return len(changes)


def given(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Result(NamedTuple):
    exit_code: int
    output: str  # and messages


@pytest.fixture
def run(machine: Machine, data: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.setenv("CODEINFO_DATA_DIR", str(data))

    def invoke(*words: str, input: str = "") -> Result:
        with CliRunner().isolation(input=input) as (*_, output):
            with pytest.raises(SystemExit) as ended:
                main(words)
            return Result(int(str(ended.value.code or 0)), output.getvalue().decode())

    return invoke
