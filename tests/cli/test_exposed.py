"""Entries that run code of the folder that a client has open are recognised and replaced."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeinfo_cli.clients import exposed, installing
from codeinfo_cli.clients.client import Client, Machine
from codeinfo_cli.clients.exposed import is_exposed
from codeinfo_cli.clients.launch import Launch, this_installation
from codeinfo_cli.clients.table import CLIENTS
from tests.cli.installing import Result, given, install

# What earlier versions wrote: from a checkout, and from a wheel without its script
OLD = (
    Launch("/src/.venv/bin/python", ("-m", "codeinfo_cli", "mcp"), {"PYTHONPATH": "/src"}),
    Launch("/opt/bin/python3.12", ("-m", "codeinfo_cli", "mcp")),
)


@pytest.mark.parametrize("old", OLD, ids=["checkout", "wheel"])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.id)
def test_an_old_entry_is_recognised_and_replaced(
    client: Client, old: Launch, machine: Machine, data: Path
) -> None:
    assert exposed.exposed_clients(machine) == []
    install(client, machine, data, old)
    assert exposed.exposed_clients(machine) == [client]
    install(client, machine, data, this_installation(data))
    assert exposed.exposed_clients(machine) == []
    assert installing.entry_of(client, machine) == client.entry(this_installation(data))


ENTRIES: tuple[tuple[bool, Any], ...] = (
    (True, {"command": "python", "args": ["-Bm", "codeinfo_cli", "mcp"]}),
    (True, {"command": "uv", "args": ["run", "python", "-m", "codeinfo_cli", "mcp", "-P"]}),
    (True, {"command": ["/p/python", "-mcodeinfo_cli", "mcp"]}),
    (True, {"command": "python", "args": ["-m", "codeinfo_cli"], "env": {"PYTHONSAFEPATH": ""}}),
    (True, {"command": ".venv/bin/codeinfo", "args": ["mcp"]}),
    (True, {"command": "./codeinfo"}),
    (False, {"command": "/p/python", "args": ["-P", "-m", "codeinfo_cli", "mcp"]}),
    (False, {"command": "/p/python", "args": ["-Im", "codeinfo_cli", "mcp"]}),
    (False, {"command": "python", "args": ["-m", "codeinfo_cli"], "env": {"PYTHONSAFEPATH": "1"}}),
    (False, {"command": "/p/python", "args": ["-E", "-P", "/codeinfo_cli/__main__.py", "mcp"]}),
    (False, {"command": "/p/python", "args": ["-m", "another", "codeinfo_cli"]}),
    (False, {"command": "codeinfo", "args": ["mcp"]}),
    (False, {"command": "~/src/codeinfo/.venv/bin/codeinfo", "args": ["mcp"]}),
    (False, {"command": "/bin/uvx", "args": ["codeinfo", "mcp"]}),
    (False, {"url": "http://127.0.0.1:5010/mcp"}),
    (False, {"command": 7, "args": {"-m": "codeinfo_cli"}, "env": []}),
    (False, {}),
    (False, ["python", "-m", "codeinfo_cli"]),
    (False, None),
)


@pytest.mark.parametrize(("expected", "entry"), ENTRIES, ids=[str(one) for _, one in ENTRIES])
def test_only_an_entry_that_runs_the_current_folder_is_one(expected: bool, entry: Any) -> None:
    assert is_exposed(entry) is expected


def test_install_says_why_it_replaces_an_entry(
    run: Callable[..., Result], machine: Machine
) -> None:
    entry = {"command": "/p/python", "args": ["-m", "codeinfo_cli", "mcp"]}
    config = machine.home / ".cursor/mcp.json"
    given(config, json.dumps({"mcpServers": {"codeinfo": entry}}, indent=2).encode())
    why = "The entry of Cursor lets a repository that you open there run its own code"
    shown = run("install", "cursor", "--print").output
    assert why in shown and re.search(r'^-\s+"-m",$', shown, re.MULTILINE)
    assert run("install", "cursor", "--yes").exit_code == 0
    assert '"-E"' in config.read_text() and "__main__.py" in config.read_text()
    assert why not in run("install", "cursor", "--print").output
