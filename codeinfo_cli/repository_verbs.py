"""`codeinfo repos`, `codeinfo remove` and `codeinfo status`: what is ingested, and how it is."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import click

from codeinfo_cli import completion, options, project, scope, terminal
from codeinfo_cli.client import Client, connected, if_running
from codeinfo_cli.errors import NOTHING, CliError
from codeinfo_cli.runs import facts_of
from codeinfo_cli.terminal import counted, note, out, styled, visible

MARKS = {"ok": "ok", "warn": "LOOK", "bad": "BROKEN", "off": "off"}


@click.command()
@click.option("-l", "--names", is_flag=True, help="Only the names.")
@options.as_json
def repos(names: bool, as_json: bool) -> None:
    """Lists name, files, passages, last ingest, folder. The exit status is 1 if there is none."""
    with connected() as client:
        body = client.get("/tools/ingested-repos")
    repositories = json.loads(body)["repos"]
    if as_json:
        terminal.json_out(body)
    elif names:
        for row in repositories:
            out(visible(row["id"]))
    else:
        _show_repositories(repositories)
        if not repositories:
            note("Nothing is ingested yet: codeinfo ingest PATH")
    if not repositories:
        sys.exit(NOTHING)


def _show_repositories(found: Sequence[Mapping[str, Any]], indent: str = "") -> None:
    cells = [
        (
            visible(row["id"]),
            counted(row["counts"]["files"], "file"),
            counted(row["counts"]["chunks"], "passage"),
            (row["lastIngestAt"] or "never")[:16].replace("T", " "),
            visible(row["hostPath"]),
            visible(
                row.get("state") or (f"failed: {row['lastError']}" if row["lastError"] else "")
            ),
        )
        for row in found
    ]
    for line in _aligned(cells, right=(1, 2)):
        name, _, rest = line.partition("  ")
        out(f"{indent}{styled(name, 'name')}  {rest}".rstrip())


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Pad the cells of a table to the width of their columns."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


@click.command()
@click.argument("name", shell_complete=completion.repositories)
@options.yes
@options.as_json
def remove(name: str, yes: bool, as_json: bool) -> None:
    """Removes a repository from the index, by name or folder. The folder itself stays as it is."""
    with connected() as client:
        root = scope.root_of(client, name)
        if not yes:
            if not terminal.is_interactive():
                raise CliError("Nothing was removed.", "NOT_CONFIRMED", next_step="Add --yes.")
            question = f"Remove {visible(root['name'])} ({visible(root['path'])}) from the index?"
            if not click.confirm(question, err=True):
                raise CliError("Nothing was removed.", "DECLINED")
        body = client.post(f"/ingest/remove/{quote(root['path'], safe='')}")
    if as_json:
        terminal.json_out(body)
    else:
        out(f"Removed {visible(root['name'])} from the index.")


@click.command()
@click.argument("name", default="", shell_complete=completion.repositories)
@options.as_json
def status(name: str, as_json: bool) -> None:
    """Shows the server, runs in progress, repositories and providers; with NAME, that repository.

    It starts no server: without one, the exit status is 1.
    """
    data = project.data_dir()
    client = if_running()
    if client is None:
        message = f"No server of {data} is running. The next verb that needs one starts it."
        raise CliError(message, "NOT_RUNNING", status=NOTHING)
    if name:
        _show_root(client, scope.here_or(client, "" if name == "." else name), as_json=as_json)
        return
    health, runs = json.loads(client.get("/health")), json.loads(client.get("/ingest/runs"))
    known = json.loads(client.get("/tools/ingested-repos"))
    address = client.address
    server = {"url": address.url, "pid": address.pid, "version": address.version}
    server |= {"dataFolder": str(data), "mcp": dict(address.mcp)}
    if as_json:
        parts = {"server": server, "health": health, "runs": runs, "repositories": known}
        terminal.json_out(json.dumps(parts).encode())
        return
    out(f"{styled('server', 'name')}  {address.url}, version {address.version}")
    out(f"        process {address.pid}, data folder {visible(str(data))}")
    for run in runs["runs"]:
        facts = facts_of(run) or run.get("message") or ""
        out(f"{styled('run', 'name')}     {run['state']} {visible(run['name'])}  {visible(facts)}")
    _show_parts(health["parts"])
    rows = known["repos"]
    out(styled("repositories" if rows else "no repository is ingested", "name"))
    _show_repositories(rows, "  ")


def _show_parts(parts: Mapping[str, Any]) -> None:
    """Show the parts of /health; those of a kind, such as providers, are nested."""
    rows: list[tuple[str, str, str, str]] = []
    for name, part in parts.items():
        nested = part.items() if "state" not in part else [(name, part)]
        for label, facts in nested:
            detail = visible(facts.get("detail") or "")
            rows.append((f"  {MARKS[facts['state']]}", label, facts["word"], detail))
    out(styled("parts", "name"))
    for line in _aligned(rows):
        out(line)


def _show_root(client: Client, name: str, *, as_json: bool) -> None:
    root = scope.root_of(client, name)
    if as_json:
        terminal.json_out(json.dumps(root).encode())
        return
    counts = root["counts"]
    facts = {
        "folder": root["path"],
        "state": root["status"],
        "last ingest": root["lastIngestAt"] or "never",
        "files": f"{counts['files']:,}, {counts['skipped']:,} skipped",
        "passages": f"{counts['chunks']:,}",
        "model": root["model"],
        "description": root["description"],
        "last error": root["lastError"],
        "damage": root["damage"],
    }
    out(styled(visible(root["name"]), "name"))
    for line in _aligned(
        [(f"  {key}", visible(str(value))) for key, value in facts.items() if value]
    ):
        out(line)
