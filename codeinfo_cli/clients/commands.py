"""The verbs `codeinfo install` and `codeinfo uninstall`."""

import json
from collections.abc import Sequence
from typing import Any

import click

from codeinfo_cli import project, terminal
from codeinfo_cli.clients.files import Change, Refused
from codeinfo_cli.clients.table import CLIENTS, Client, Machine, client_named, this_machine
from codeinfo_cli.errors import NOTHING, CliError

# What an entry does that `exposed` finds
EXPOSED = "lets a repository that you open there run its own code: an earlier codeinfo wrote it."
# First letter of a line of a diff → style
STYLES = {"+": "added", "-": "removed", "@": "mark"}


class ClientName(click.ParamType[Client]):
    """The id of a client, or another name for it."""

    name = "client"

    def convert(self, value: Any, param: Any, ctx: Any) -> Client:
        if isinstance(value, Client):
            return value
        if client := client_named(str(value).lower()):
            return client
        known = ", ".join(one.id for one in CLIENTS)
        return self.fail(f"{value!r} is not known. Known are: {known}.")

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        return [CompletionItem(one.id) for one in CLIENTS if one.id.startswith(incomplete)]


def _options(command: Any) -> Any:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        click.option("--print", "only_print", is_flag=True, help="Show the change; write nothing."),
        click.option("-y", "--yes", is_flag=True, help="Write without asking."),
    ):
        command = option(command)
    return command


@click.command("install")
@click.argument("client", type=ClientName(), required=False)
@_options
def install_command(client: Client | None, yes: bool, only_print: bool, as_json: bool) -> None:
    """Add codeinfo to an MCP client on this machine.

    Shows what changes in the client's configuration, and asks. A short instruction file makes the
    client's model use the tools. Without CLIENT, lists the clients that are known.

    \b
        codeinfo install claude-code
        codeinfo install codex --yes
        codeinfo install zed --print
    """
    if client is None:
        _list(as_json)
        return
    from codeinfo_cli.clients import exposed, installing  # noqa: PLC0415 - tomlkit is slow
    from codeinfo_cli.clients.launch import this_installation  # noqa: PLC0415

    data = project.data_dir()
    try:
        if exposed.is_exposed(installing.entry_of(client, machine())) and not as_json:
            terminal.out(f"The entry of {client.label} {EXPOSED}\nThis replaces it.")
        changes = installing.plan_install(client, machine(), this_installation(data))
        if agreed := _agreed(client, changes, "already there", yes, only_print, as_json):
            installing.make(changes, client, data)
        added = f"Added codeinfo to {client.label}. Restart it to use the tools."
        _done(client, changes, added, agreed, as_json)
    except Refused as refusal:
        raise CliError(str(refusal), "CLIENT_REFUSED") from None


@click.command("uninstall")
@click.argument("client", type=ClientName())
@_options
def uninstall_command(client: Client, yes: bool, only_print: bool, as_json: bool) -> None:
    """Remove codeinfo from an MCP client on this machine.

    Files that were not edited since `codeinfo install` become as they were; from others, only the
    entry of codeinfo is removed.

    \b
        codeinfo uninstall cursor
    """
    from codeinfo_cli.clients import installing  # noqa: PLC0415

    data = project.data_dir()
    try:
        changes = installing.plan_uninstall(client, machine(), data)
        if agreed := _agreed(client, changes, "not there", yes, only_print, as_json):
            installing.make(changes, client, data, removes=True)
        _done(client, changes, f"Removed codeinfo from {client.label}.", agreed, as_json)
    except Refused as refusal:
        raise CliError(str(refusal), "CLIENT_REFUSED") from None


def machine() -> Machine:
    """Return where the user's files are. Raises CliError for a user without a home folder."""
    try:
        return this_machine()
    except RuntimeError:
        message = "Your user has no home folder."
        raise CliError(message, "NO_HOME", next_step="HOME names it.") from None


def _list(as_json: bool) -> None:
    found_on = machine()
    rows = [
        {
            "client": client.id,
            "label": client.label,
            "found": client.is_on(found_on),
            "config": str(client.config(found_on)),
        }
        for client in CLIENTS
    ]
    if as_json:
        terminal.json_out(json.dumps(rows).encode())
        return
    for row in rows:
        mark = "found" if row["found"] else "-"
        path = terminal.visible(str(row["config"]))
        terminal.out(f"{row['client']:<12} {mark:<6} {path}")


def _agreed(
    client: Client,
    changes: Sequence[Change],
    unchanged: str,
    yes: bool,
    only_print: bool,
    as_json: bool,
) -> bool:
    """Show the changes, and return True if they are to be made."""
    if as_json:
        if changes and not (yes or only_print):
            raise click.UsageError("With --json, add --yes or --print.")
        return bool(changes) and not only_print
    if not changes:
        terminal.out(f"codeinfo is {unchanged} in {client.label}: nothing to change.")
        return False
    for change in changes:
        for line in change.diff.split("\n"):
            shown, style = terminal.visible(line), STYLES.get(line[:1])
            terminal.out(terminal.styled(shown, style) if style else shown)
    if only_print:
        return False
    if yes or click.confirm("Write this?"):
        return True
    raise CliError("Nothing was changed.", "REFUSED", status=NOTHING)


def _done(
    client: Client, changes: Sequence[Change], text: str, written: bool, as_json: bool
) -> None:
    if as_json:
        rows = [{"path": str(one.path), "diff": one.diff} for one in changes]
        answer = {"client": client.id, "changes": rows, "written": written}
        terminal.json_out(json.dumps(answer).encode())
    elif written:
        terminal.out(text)
