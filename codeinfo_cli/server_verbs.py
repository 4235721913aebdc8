"""The verbs of the server itself, and Django's commands that have a verb."""

import json
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import click

from codeinfo_cli import options, project, server, terminal
from codeinfo_cli.client import if_running
from codeinfo_cli.errors import FAILED, NOTHING, CliError
from codeinfo_cli.terminal import note, out

# Live answers are ended and the ingest worker is stopped first.
STOP_SECONDS = 60.0


@click.command()
@click.option("--no-migrate", is_flag=True, help="Leave the database schema as it is.")
def serve(no_migrate: bool) -> None:
    """Serves pages, API and MCP in this terminal until Ctrl-C.

    Other verbs need no `serve`: they start a server in the background. Settings are environment
    variables; docs/configuration.md lists them.
    """
    if address := server.running(project.data_dir()):
        message = f"A server of this data folder is running: {address.url}"
        raise CliError(message, "RUNNING", next_step="codeinfo stop ends it.")
    server.choose_ports()
    from manage import main as django  # noqa: PLC0415 - found by `project.use`; imports Django

    django(["codeinfo", "serve", *(["--no-migrate"] if no_migrate else [])])


@click.command()
def worker() -> None:
    """Ingests what is queued, in this terminal, until Ctrl-C.

    A server starts a worker by itself, and needs none beside it: with the default settings one
    process at a time uses a data folder.
    """
    _django("worker")


@click.command()
@options.yes
@options.as_json
def stop(yes: bool, as_json: bool) -> None:
    """Stops the server of the data folder, also one in another terminal. An ingest in progress
    ends and is started again by the next server. The exit status is 1 if none is running.
    """
    data, client = project.data_dir(), if_running()
    pid = client.address.pid if client else server.process_of(data)
    if pid is None:
        try:
            server.refuse_folder(data / "server.lock")
        except server.ServerUnavailable as error:
            raise CliError(str(error), "SERVER_UNAVAILABLE") from error
        raise CliError("No server is running.", "NOT_RUNNING", status=NOTHING)
    if client and not yes:
        _confirm(json.loads(client.get("/ingest/runs"))["runs"])
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # It has ended meanwhile.
    except PermissionError:
        message = f"The server (process {pid}) is one of another user."
        raise CliError(message, "NOT_PERMITTED") from None
    if not server.wait_for_end(data, STOP_SECONDS):
        message = f"The server (process {pid}) has not ended after {STOP_SECONDS:.0f} s."
        raise CliError(message, "STILL_RUNNING")
    if as_json:
        terminal.json_out(json.dumps({"status": "ok", "pid": pid}).encode())
    else:
        out(f"Stopped the server (process {pid}).")


def _confirm(runs: Sequence[Mapping[str, Any]]) -> None:
    """Ask if runs are in progress. Raises CliError if they are not to be interrupted."""
    if not runs:
        return
    message = f"An ingest is in progress: {', '.join(run['name'] for run in runs)}."
    if not terminal.is_interactive():
        raise CliError(message, "BUSY", next_step="--yes interrupts it.")
    note(message)
    if not click.confirm("Interrupt it?", err=True):
        raise CliError("The server is still running.", "DECLINED")


@click.command()
@options.as_json
def doctor(as_json: bool) -> None:
    """Checks the installation, with a running server or without, and says how to mend it.

    The exit status is 1 if something is broken.
    """
    _django("doctor", json=as_json)


@click.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--force", is_flag=True, help="Replace FILE.")
@options.as_json
def backup(file: str, force: bool, as_json: bool) -> None:
    """Writes database, index and secret.key to one archive (.tar.gz), which only you can read. A
    running server goes on meanwhile."""
    _django("backup", file, force=force, json=as_json)


@click.command()
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--data-dir", type=click.Path(), help="The folder; by default the data folder.")
@options.as_json
def restore(file: str, data_dir: str | None, as_json: bool) -> None:
    """Restores an archive to a new or empty data folder, and verifies it.

    The exit status is 1 if rows and index differ.
    """
    _django("restore", file, data_dir=data_dir, json=as_json)


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def manage(arguments: tuple[str, ...]) -> None:
    """Run a command of Django's command line, such as verify_index or createsuperuser."""
    from manage import main as django  # noqa: PLC0415 - found by `project.use`; imports Django

    django(["codeinfo manage", *arguments])


def _django(name: str, *arguments: str, **flags: object) -> None:
    """Run a command of Django's in this process. Raises CliError instead of CommandError."""
    import django  # noqa: PLC0415 - other verbs do not need it
    from django.core.management import CommandError, call_command  # noqa: PLC0415

    try:
        django.setup()
        call_command(name, *arguments, **flags)
    except CommandError as error:
        # Ctrl-C has a status of its own.
        status = FAILED if error.returncode == 1 else error.returncode
        raise CliError(str(error), "FAILED", status=status) from error
    except Exception as error:
        from apps.core.system.start_errors import sentence  # noqa: PLC0415

        if not (message := sentence(error)):
            raise
        raise CliError(message, "FAILED") from error


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Writes the script that lets a shell complete verbs, options, repositories and paths.

    Repositories and paths are those of a running server; completion starts none.
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only needed here

    kind = get_completion_class(shell)
    if kind is None:
        raise CliError(f"There is no completion for {shell}.", "NO_COMPLETION")
    root = context.find_root().command
    terminal.write(kind(root, {}, "codeinfo", "_CODEINFO_COMPLETE").source() + "\n")
