"""Entries that run code of the folder which a client has open, as earlier versions wrote them."""

import re
from contextlib import suppress
from typing import Any

from codeinfo_cli.clients import installing
from codeinfo_cli.clients.client import Client, Machine
from codeinfo_cli.clients.files import Refused
from codeinfo_cli.clients.table import CLIENTS

# Options of Python: which module it starts; that the current folder is not in the import path
MODULE = re.compile(r"-[A-Za-z]*m ?codeinfo_cli")
SAFE = re.compile(r"-[A-HJ-OQ-Za-z]*[IP][A-Za-z]*")


def is_exposed(entry: Any) -> bool:
    """Return True if a client's entry runs code of the folder in which the client starts it.

    `python -m` imports from the current folder, unless an option forbids it. A program with a
    relative path is one of that folder.
    """
    if not isinstance(entry, dict):
        return False
    program, *words = _words(entry)
    if "/" in program and not program.startswith(("/", "~", "$")):
        return True
    variables = entry.get("env") or entry.get("environment") or entry.get("envs")
    if isinstance(variables, dict) and variables.get("PYTHONSAFEPATH"):
        return False
    for number, word in enumerate(words):
        if MODULE.fullmatch(" ".join(words[number : number + 2])) or MODULE.fullmatch(word):
            return not any(map(SAFE.fullmatch, words[: number + 1]))
    return False


def _words(entry: dict[str, Any]) -> list[str]:
    """Return the program and its arguments; opencode has them in one list, Goose a `cmd`."""
    words: list[str] = []
    for part in (entry.get("command") or entry.get("cmd"), entry.get("args")):
        words += [str(word) for word in part] if isinstance(part, list) else [str(part or "")]
    return words


def exposed_clients(machine: Machine) -> list[Client]:
    """Return the clients whose entry for codeinfo is such. A file that cannot be read has none."""
    exposed = []
    for client in CLIENTS:
        with suppress(Refused):
            if is_exposed(installing.entry_of(client, machine)):
                exposed.append(client)
    return exposed
