"""`codeinfo impact`: what a change affects."""

from collections.abc import Mapping
from typing import Any

import click

from codeinfo_cli import completion, options, scope, terminal
from codeinfo_cli.client import connected
from codeinfo_cli.errors import CliError
from codeinfo_cli.terminal import notes, out, styled, visible

MAX_PATCH = 900_000  # bytes that are read
# Above the rows of a kind
HEADINGS = {
    "changed": "Changed",
    "caller": "Callers",
    "test": "Tests",
    "importer": "Imported by",
    "together": "Changed together before",
}


@click.command()
@click.argument("name", default="", shell_complete=completion.repositories)
@click.option("--base", default="", metavar="COMMIT", help="A branch, tag, id or 'ingest'; HEAD.")
@click.option("-p", "--patch", metavar="FILE", help="A unified diff; - reads it from stdin.")
@click.option("-d", "--depth", type=click.IntRange(1, 5), default=2, help="Of callers; 2.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=200, help="Rows; 200.")
@options.cursor
@options.as_json
def impact(
    name: str,
    base: str,
    patch: str | None,
    depth: int,
    limit: int,
    cursor: str,
    as_json: bool,
) -> None:
    """Shows the callers and tests of what has changed in the work tree, or of what a patch changes.

    NAME is a repository, by name or folder; by default the one that contains the current folder.
    The exit status is 1 if nothing has changed.
    """
    query: dict[str, Any] = {"base": base, "depth": depth, "limit": limit, "cursor": cursor}
    if patch is not None:
        query["patch"] = _read(patch)
    with connected() as client:
        query["repository"] = scope.here_or(client, name)
        body = client.post("/tools/impact", query)
    terminal.answer_out(body, _show, as_json=as_json)


def _read(name: str) -> str:
    """The text of a file, or of stdin. Raises CliError."""
    text = terminal.text_of(name, MAX_PATCH)
    if not text.strip():
        raise CliError("The patch is empty.", "NO_PATCH")
    return text


def _show(answer: Mapping[str, Any]) -> None:
    paths, shown = scope.Paths(), ""
    for row in answer["results"]:
        if row["kind"] != shown:
            shown = row["kind"]
            out(styled(HEADINGS[shown], "name"))
        out(f"  {_line(row, paths)}")
    notes(answer, "notes", "hint", "degraded", "stale")


def _line(row: Mapping[str, Any], paths: scope.Paths) -> str:
    """The place of a row, and what it is to the change."""
    lines = "" if row["startLine"] is None else f":{row['startLine']}"
    place = styled(f"{paths.of(row)}{lines}", "path")
    if row["kind"] == "changed":
        old = [row[key] for key in ("oldPath", "oldSymbol") if key in row]
        was = f" from {visible(' '.join(old))}" if old else ""
        return f"{place}  {row['change']} {visible(row.get('symbol', ''))}{was}".rstrip()
    if "commits" in row:
        return f"{place}  {row['commits']} times with {visible(row['of'])}"
    mark = "" if row["certainty"] == "proven" else "  possible"
    return f"{place}  {visible(_way(row))}{styled(mark, 'dim') or mark}"


def _way(row: Mapping[str, Any]) -> str:
    """`test_get -> Client.get ~> Client.send`: `~>` is a possible use."""
    if "way" not in row:
        return f"-> {row['of']}"
    text = ""
    for step in row["way"]:
        arrow = {"proven": " -> ", "possible": " ~> "}.get(step.get("certainty", ""), "")
        text += f"{step['symbol'] or step['relPath']}{arrow}"
    return text
