"""`codeinfo overview`: what a repository is."""

import json
from collections.abc import Mapping
from typing import Any

import click

from codeinfo_cli import completion, options, scope, terminal
from codeinfo_cli.client import connected
from codeinfo_cli.terminal import counted, notes, out, styled, visible

# Above the rows of a kind
HEADINGS = {
    "build": "Build",
    "tests": "Tests",
    "run": "Run",
    "entry point": "Entry points",
    "imported": "Imported most",
}


@click.command()
@click.argument("name", default="", shell_complete=completion.repositories)
@options.as_json
def overview(name: str, as_json: bool) -> None:
    """Shows languages, modules, how to build and test, entry points and the most imported files.

    NAME is a repository, by name or folder; by default the one that contains the current folder.
    """
    with connected() as client:
        named = scope.chosen(client, [name] if name else [], every=False)
        repository = named[0] if named else scope.here_or(client, "")
        body = client.post("/tools/overview", {"repository": repository})
    if as_json:
        terminal.json_out(body)
        return
    answer = json.loads(body)
    _show(answer)
    notes(answer, "notes", "degraded", "stale")


def _show(answer: Mapping[str, Any]) -> None:
    paths = scope.Paths()
    out(f"{styled(visible(answer['repo']), 'name')}  {counted(answer['files'], 'file')}")
    rows = answer["results"]
    for row in rows:
        if row["kind"] == "readme":
            out(f"{visible(row['chunk'])}  {styled(_place(paths, row), 'path')}")
    _head("Languages", answer["languages"])
    for language in answer["languages"]:
        lines = f"  {counted(language['lines'], 'line')}" if language["lines"] is not None else ""
        share = f"{max(1, round(language['share'] * 100))} %"
        out(f"  {visible(language['name'])}  {share}  {counted(language['files'], 'file')}{lines}")
    _head("Modules", answer["modules"])
    for module in answer["modules"]:
        facts = [counted(module["files"], "file"), module["purpose"] or module["language"]]
        parts = f"  {', '.join(map(visible, module['parts']))}" if module["parts"] else ""
        path = styled(visible(module["path"] or "./"), "path")
        out(f"  {path}  {'  '.join(filter(None, facts))}{parts}")
    for kind, heading in HEADINGS.items():
        own = [row for row in rows if row["kind"] == kind]
        _head(heading, own)
        for row in own:
            name = f"  {styled(visible(row['symbol']), 'name')}" if row.get("symbol") else ""
            out(f"  {styled(_place(paths, row), 'path')}{name}  {visible(row['of'])}")


def _head(text: str, rows: object) -> None:
    if rows:
        out()
        out(text)


def _place(paths: scope.Paths, row: Mapping[str, Any]) -> str:
    return f"{paths.of(row)}:{row['startLine']}"
