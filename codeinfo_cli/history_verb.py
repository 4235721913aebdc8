"""`codeinfo history`: who changed what, when and why."""

from collections.abc import Mapping
from typing import Any

import click

from codeinfo_cli import completion, options, scope, terminal
from codeinfo_cli.client import connected
from codeinfo_cli.file_verbs import split_lines
from codeinfo_cli.terminal import notes, out, styled, visible

SHORT = 10  # characters of an id


@click.command()
@click.argument("path", default=".", metavar="[PATH[:FIRST-LAST]]", shell_complete=completion.paths)
@click.option("-b", "--blame", "of", flag_value="blame", help="The commit of each line.")
@click.option("-d", "--diff", "of", flag_value="diff", help="What changed between two commits.")
@click.option("-s", "--symbol", default="", metavar="NAME", help="Only the lines of a definition.")
@click.option("--from", "since", default="", metavar="COMMIT", help="A branch, tag, id, HEAD~3.")
@click.option("--to", default="", metavar="COMMIT", help="HEAD. Alone with -d: its change.")
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=20, help="Rows; 20.")
@options.cursor
@options.as_json
def history(
    path: str,
    of: str | None,
    symbol: str,
    since: str,
    to: str,
    limit: int,
    cursor: str,
    as_json: bool,
) -> None:
    """Lists the commits that changed a path, lines or a definition, latest first.

    By default the current folder. With -d and without commits: what was committed since the
    ingest. The exit status is 1 if nothing is there.
    """
    name, first, last = split_lines(path)
    query: dict[str, Any] = {"of": of or "log", "symbol": symbol, "from": since, "to": to}
    query |= {"limit": limit, "cursor": cursor}
    if first is not None:
        query["lines"] = f"{first}-{'' if last is None else last}"
    with connected() as client:
        place = scope.locate(client, name)
        query |= {"repository": place.repository, "path": place.path}
        body = client.post("/tools/history", query)
    terminal.answer_out(body, _show, as_json=as_json)


def _show(answer: Mapping[str, Any]) -> None:
    paths, shown = scope.Paths(), ""
    if "commit" in answer:
        out(_commit(answer["commit"]))
        out(visible(answer["commit"]["message"], lines=True))
    for row in answer["results"]:
        if row["kind"] == "commit":
            out(_commit(row))
            out(f"    {visible(row['message'].partition(chr(10))[0])}")
        elif answer["of"] == "blame":
            _show_lines(row)
        else:
            shown = _show_hunk(row, paths, shown)
    notes(answer, "notes", "hint", "degraded", "stale")


def _commit(row: Mapping[str, Any]) -> str:
    """`1a2b3c4d5e 2026-11-28 Jane Doe`."""
    old = f" as {visible(row['oldPath'])}" if "oldPath" in row else ""
    commit = styled(row["commit"][:SHORT], "mark")
    return f"{commit} {row['date'][:10]} {visible(row['author'])}{old}"


def _show_lines(row: Mapping[str, Any]) -> None:
    name = visible(row.get("author", "not committed"))[:14]
    date = row.get("date", "")[:10]
    head = f"{styled(row.get('commit', '')[:SHORT].ljust(SHORT), 'mark')} {date:10} {name:14}"
    for number, line in enumerate(row["chunk"].split("\n"), row["startLine"]):
        out(f"{head} {styled(f'{number:>5}', 'line')}  {visible(line)}")


def _show_hunk(row: Mapping[str, Any], paths: scope.Paths, shown: str) -> str:
    """Show a hunk, below its file unless that is `shown` already. Return the file."""
    old = f" from {visible(row['oldPath'])}" if "oldPath" in row else ""
    head = f"{styled(paths.of(row), 'path')}  {row['kind']}{old}"
    if head != shown:
        out(head)
    if row["chunk"]:
        terminal.out_diff(row["chunk"])
    return head
