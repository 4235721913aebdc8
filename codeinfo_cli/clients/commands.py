"""The verbs `codeinfo install` and `codeinfo uninstall`."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from codeinfo_cli import project, terminal
from codeinfo_cli.clients.client import Client, Machine, this_machine
from codeinfo_cli.clients.files import Change, Refused
from codeinfo_cli.clients.table import CLIENTS, PROJECT, client_named
from codeinfo_cli.errors import FAILED, NOTHING, CliError

# What an entry does that `exposed` finds
EXPOSED = "lets a repository that you open there run its own code: an earlier codeinfo wrote it."


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


@dataclass(frozen=True)
class Options:
    """What the user wants of the changes."""

    yes: bool
    only_print: bool
    as_json: bool


def _options(command: Any) -> Any:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
        click.option("--print", "only_print", is_flag=True, help="Show the change; write nothing."),
        click.option("-y", "--yes", is_flag=True, help="Write without asking."),
        click.option(
            "--project", "in_project", is_flag=True,
            help="In .mcp.json, .vscode/mcp.json and .cursor/mcp.json of the current folder.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("install")
@click.argument("client", type=ClientName(), required=False)
@_options
def install_command(client: Client | None, in_project: bool, **flags: bool) -> None:
    """Add codeinfo to an MCP client on this machine.

    Shows what changes in the client's configuration, and asks. A short instruction file makes the
    client's model use the tools. Without CLIENT, lists the clients, and adds codeinfo to all that
    are found. With --project, the entries are for all who work on the project: they start the
    codeinfo of each PATH.

    \b
        codeinfo install claude-code
        codeinfo install codex --yes
        codeinfo install zed --print
    """
    # tomlkit is slow
    from codeinfo_cli.clients import exposed, installing  # noqa: PLC0415
    from codeinfo_cli.clients.launch import Launch, this_installation  # noqa: PLC0415

    options, data = Options(**flags), project.data_dir()
    on, clients = _chosen(client, in_project)
    launch = Launch("codeinfo", ("mcp",)) if in_project else this_installation(data)
    if in_project and not shutil.which("codeinfo", path=machine().path):
        step = "Link it to a folder of your PATH, as docs/cli.md says."
        raise CliError("codeinfo is not on your PATH.", "NOT_ON_PATH", next_step=step)
    if client is None and not in_project:
        asks = options.yes or options.only_print
        if not options.as_json or not asks:
            _list(on, options.as_json)
        clients = clients if asks or not options.as_json else []

    def plan(client: Client) -> list[Change]:
        if exposed.is_exposed(installing.entry_of(client, on)) and not options.as_json:
            terminal.out(f"The entry of {client.label} {EXPOSED}\nThis replaces it.")
        return installing.plan_install(client, on, launch)

    def write(client: Client, changes: Sequence[Change]) -> str:
        installing.make(changes, client, data)
        return f"Added codeinfo to {client.label}. Restart it to use the tools."

    _make(clients, plan, write, "already there", options)


@click.command("uninstall")
@click.argument("client", type=ClientName(), required=False)
@_options
def uninstall_command(client: Client | None, in_project: bool, **flags: bool) -> None:
    """Remove codeinfo from an MCP client on this machine.

    Files that were not edited since `codeinfo install` become as they were; from others, only the
    entry of codeinfo is removed.

    \b
        codeinfo uninstall cursor
    """
    from codeinfo_cli.clients import installing  # noqa: PLC0415

    if client is None and not in_project:
        raise click.UsageError("Name a client, or say --project.")
    data = project.data_dir()
    on, clients = _chosen(client, in_project)

    def write(client: Client, changes: Sequence[Change]) -> str:
        installing.make(changes, client, data, removes=True)
        return f"Removed codeinfo from {client.label}."

    def plan(client: Client) -> list[Change]:
        return installing.plan_uninstall(client, on, data)

    _make(clients, plan, write, "not there", Options(**flags))


def _chosen(client: Client | None, in_project: bool) -> tuple[Machine, list[Client]]:
    """Where to change files, and whose: of one client, of all that are found, or of the project."""
    if not in_project:
        on = machine()
        return on, [client] if client else [one for one in CLIENTS if one.is_on(on)]
    if client is not None:
        raise click.UsageError("--project is for all clients: leave CLIENT out.")
    folder = Path.cwd()
    # What was there before is recorded for each project.
    mark = hashlib.sha256(bytes(folder)).hexdigest()[:12]
    return Machine(folder), [replace(one, id=f"{one.id}-{mark}") for one in PROJECT]


def machine() -> Machine:
    """Return where the user's files are. Raises CliError for a user without a home folder."""
    try:
        return this_machine()
    except RuntimeError:
        message = "Your user has no home folder."
        raise CliError(message, "NO_HOME", next_step="HOME names it.") from None


def _list(found_on: Machine, as_json: bool) -> None:
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
        terminal.out(f"{row['client']:<16} {mark:<6} {path}")


def _make(
    clients: Sequence[Client],
    plan: Callable[[Client], list[Change]],
    write: Callable[[Client, Sequence[Change]], str],
    unchanged: str,
    options: Options,
) -> None:
    """Plan the changes of all clients, ask once, and write them. A client whose files are refused
    is left as it is. Raises CliError if it is the only one, and exits with FAILED otherwise."""
    plans, refused = _planned(clients, plan, unchanged, options)
    is_written = _agreed(any(plans.values()), options)
    left: set[Client] = set()
    for client, changes in plans.items() if is_written else ():
        try:
            text = write(client, changes) if changes else ""
        except Refused as refusal:
            refused.append(str(refusal))
            left.add(client)
            text = ""
        if text and not options.as_json:
            terminal.out(text)
    if refused and len(clients) == 1:
        raise CliError(refused[0], "CLIENT_REFUSED")
    if options.as_json and clients:
        answers = [
            _answer(one, changes, written=is_written and one not in left)
            for one, changes in plans.items()
        ]
        terminal.json_out(json.dumps(answers if len(clients) > 1 else answers[0]).encode())
    for sentence in refused:
        terminal.note(f"codeinfo: {sentence}")
    if refused:
        sys.exit(FAILED)


def _planned(
    clients: Sequence[Client],
    plan: Callable[[Client], list[Change]],
    unchanged: str,
    options: Options,
) -> tuple[dict[Client, list[Change]], list[str]]:
    """Plan and show the changes of each client. Return them, and why others are left."""
    plans: dict[Client, list[Change]] = {}
    refused: list[str] = []
    for client in clients:
        try:
            plans[client] = plan(client)
        except Refused as refusal:
            refused.append(str(refusal))
            continue
        if not options.as_json:
            _show(client, plans[client], unchanged)
    return plans, refused


def _show(client: Client, changes: Sequence[Change], unchanged: str) -> None:
    if not changes:
        terminal.out(f"codeinfo is {unchanged} in {client.label}: nothing to change.")
    for change in changes:
        terminal.out_diff(change.diff)


def _agreed(has_changes: bool, options: Options) -> bool:
    """Whether the changes are to be made. Raises CliError if the user says no, or cannot say."""
    if not has_changes or options.only_print:
        return False
    if options.as_json and not options.yes:
        raise click.UsageError("With --json, add --yes or --print.")
    try:
        if options.yes or click.confirm("Write this?"):
            return True
    except click.Abort as abort:
        if not isinstance(abort.__context__, EOFError):
            raise
        message, step = "Nothing was changed: nobody can be asked here.", "Add --yes or --print."
        raise CliError(message, "NO_TERMINAL", next_step=step) from None
    raise CliError("Nothing was changed.", "REFUSED", status=NOTHING)


def _answer(client: Client, changes: Sequence[Change], *, written: bool) -> dict[str, Any]:
    rows = [{"path": str(one.path), "diff": one.diff} for one in changes]
    return {"client": client.id, "changes": rows, "written": written and bool(changes)}
