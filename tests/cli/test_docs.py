"""docs/clients.md lists every client, and its files."""

from pathlib import Path

from codeinfo_cli.clients.client import Machine
from codeinfo_cli.clients.table import CLIENTS
from tests.house.sources import HOME


def test_the_table_of_clients_is_documented() -> None:
    text = (HOME / "docs/clients.md").read_text()
    machine = Machine(Path("~"))
    for client in CLIENTS:
        instructions = client.instructions
        how = f"{instructions.kind}: `{client.instructions_on(machine)}` " if instructions else ""
        row = (
            f"| {client.label} | `{client.id}` | `{client.config(machine)}` | {client.format} "
            f"| {how}|"
        )
        assert row in text, row
