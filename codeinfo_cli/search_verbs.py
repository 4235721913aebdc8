"""`codeinfo search` and `codeinfo context`: questions in words."""

import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

import click

from codeinfo_cli import options, scope, terminal
from codeinfo_cli.client import Client, connected
from codeinfo_cli.terminal import counted, note, notes, out, styled, visible

# Lines of a passage that are shown without --full
SHOWN_LINES = 12
# The least width that lines are cut to
MIN_WIDTH = 20


@click.command()
@click.argument("question", nargs=-1, required=True)
@options.repository
@options.path_filter
@options.language
@click.option("-n", "--limit", type=click.IntRange(1, 20), default=5, help="Results; 5.")
@click.option("-f", "--full", is_flag=True, help="Whole passages, not their first lines.")
@click.option("-l", "--files", is_flag=True, help="Only the places: path:first-last.")
@options.as_json
def search(
    question: tuple[str, ...],
    repos: tuple[str, ...],
    every: bool,
    globs: tuple[str, ...],
    language: str | None,
    limit: int,
    full: bool,
    files: bool,
    as_json: bool,
) -> None:
    """Finds by meaning and by words, in the language of the search page: lang: file: repo: rev:
    sym: content: case: type:file "exact" /expression/ -word OR ( ). With conditions alone, it
    lists lines, or files with type:file.

    Put it in single quotes for the shell, and -- before a first word with a minus. The exit status
    is 1 if nothing is found.
    """
    with connected() as client:
        query = {"box": " ".join(question), "limit": limit}
        query |= _filters(client, repos, every, globs, language)
        body = client.get(f"/search?{urlencode(query, doseq=True)}")
    terminal.answer_out(body, partial(_show, full=full, files=files), as_json=as_json)


@click.command()
@click.argument("question", nargs=-1, required=True)
@options.repository
@options.path_filter
@options.language
@click.option(
    "-n", "--tokens", type=click.IntRange(200, 20_000), default=4_000, help="Size; 4000 tokens."
)
@options.as_json
def context(
    question: tuple[str, ...],
    repos: tuple[str, ...],
    every: bool,
    globs: tuple[str, ...],
    language: str | None,
    tokens: int,
    as_json: bool,
) -> None:
    """Gathers passages, the definitions they use, their callers and tests, as a model needs them.

    The exit status is 1 if nothing is found.
    """
    with connected() as client:
        query = {"question": " ".join(question), "max_tokens": tokens}
        query |= _filters(client, repos, every, globs, language)
        body = client.post("/tools/context", query)
    terminal.answer_out(body, partial(_show, full=True, files=False), as_json=as_json)


def _filters(
    client: Client, repos: Sequence[str], every: bool, globs: tuple[str, ...], language: str | None
) -> dict[str, Any]:
    """The options that restrict where a search looks."""
    return {
        "repository": scope.chosen(client, repos, every),
        "path": options.file_filter(globs),
        "language": language or "",
    }


def _show(answer: Mapping[str, Any], *, full: bool, files: bool) -> None:
    paths = scope.Paths()
    for number, row in enumerate(answer["results"]):
        kind = row.get("kind")
        place = styled(paths.of(row), "path")
        if lines := scope.lines_of(row):
            place += styled(":", "mark") + styled(lines, "line")
        if files or kind == "file":
            out(place)
            continue
        if number:
            out()
        out("  ".join([place, *_facts(row)]))
        _show_lines(row, full=full)
    _say(answer)


def _facts(row: Mapping[str, Any]) -> list[str]:
    """What is known of a passage beside its place."""
    facts = [styled(visible(row["symbol"]), "name")] if row.get("symbol") else []
    kind = row.get("kind")
    if kind and kind not in ("passage", "match"):
        facts.append(styled(visible(f"{kind} of {row['of']}" if row.get("of") else kind), "dim"))
    if row.get("weak"):
        facts.append(styled("(weak: maybe unrelated)", "dim"))
    return facts


def _show_lines(row: Mapping[str, Any], *, full: bool) -> None:
    lines = visible(row["chunk"], lines=True).rstrip("\n").split("\n")
    shown = lines if full else lines[:SHOWN_LINES]
    start = row.get("startLine")
    digits = len(str((start or 0) + len(lines)))
    width = shutil.get_terminal_size().columns if terminal.is_terminal(sys.stdout) else 0
    for offset, line in enumerate(shown):
        number = f"{start + offset:>{digits}}" if isinstance(start, int) else " " * digits
        room = max(MIN_WIDTH, width - digits - 4) if width and not full else 0
        out(f"  {styled(number, 'line')}  {_cut(line.expandtabs(4), room) if room else line}")
    if len(lines) > len(shown):
        out(styled(f"  {'…':>{digits}}  {counted(len(lines) - len(shown), 'more line')}", "dim"))


def _cut(line: str, columns: int) -> str:
    """Cut a line to the columns of a terminal; East Asian characters take two."""
    used = 0
    for index, letter in enumerate(line):
        used += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if used > columns:
            return f"{line[: index - 1]}…"
    return line


def _say(answer: Mapping[str, Any]) -> None:
    """Write what the answer says beside its results to stderr."""
    results: Sequence[Any] = answer["results"]
    for text in answer.get("hints", ()):
        note(text)
    if "exact" in answer and (total := _total(answer)):
        note(total)
    if missing := answer.get("missingWords"):
        note(f"Not in these repositories: {', '.join(missing)}")
    if left_out := answer.get("leftOut"):
        note(f"Left out for lack of room: {', '.join(map(str, left_out))}")
    notes(answer, "stopped", "slow", "degraded", "hint")
    if not results and not answer.get("hint"):
        note("Nothing fits. Try the words that the code itself would use, or --all.")


def _total(answer: Mapping[str, Any]) -> str:
    """How many lines or files there are; "" if all are shown, or passages, which are ranked."""
    results: Sequence[Mapping[str, Any]] = answer["results"]
    is_files = any(row.get("kind") == "file" for row in results)
    total = answer["files"] if is_files else answer.get("lines")
    if total is None or not results or (answer["exact"] and total <= len(results)):
        return ""
    more = "" if answer["exact"] else "More than "
    return f"{more}{counted(total, 'file' if is_files else 'line')}. Show more with -n."
