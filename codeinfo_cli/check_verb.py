"""`codeinfo check`: which citations of a text still hold."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from codeinfo_cli import options, scope, terminal
from codeinfo_cli.client import connected
from codeinfo_cli.errors import NOTHING
from codeinfo_cli.terminal import notes, out, styled, visible

MAX_TEXT = 100_000  # bytes that are read
HOLDING = ("ok", "moved", "exists")


@click.command()
@click.argument("file", default="-")
@options.repository
@click.option("--commit", default="", help="A branch, tag or id: whose lines are cited.")
@options.as_json
def check(file: str, repos: tuple[str, ...], every: bool, commit: str, as_json: bool) -> None:
    """Checks citations such as `src/a.py:10-20`, and the code quoted below them.

    FILE is a text; by default it is read from stdin. The exit status is 1 if a citation does not
    hold, or if there are none.
    """
    text = terminal.text_of(file, MAX_TEXT)
    with connected() as client:
        repository = scope.chosen(client, repos, every)
        query = {"text": text, "repository": repository, "commit": commit}
        body = client.post("/tools/check-citations", query)
    answer = json.loads(body)
    if as_json:
        terminal.json_out(body)
    else:
        _show(answer)
    rows = answer["results"]
    if not rows or any(row["verdict"] not in HOLDING for row in rows):
        sys.exit(NOTHING)


def _show(answer: Mapping[str, Any]) -> None:
    paths = scope.Paths()
    for row in answer["results"]:
        now = f"  {paths.of(row)}:{row['startLine']}" if row["verdict"] == "moved" else ""
        mark = "dim" if row["verdict"] in HOLDING else "removed"
        verdict = styled(row["verdict"], mark)
        out(f"{verdict}  {styled(visible(row['cited']), 'path')}{now and ' ->' + now[1:]}")
    notes(answer, "summary", "hint", "degraded")
