"""`codeinfo read`, `codeinfo ls` and `codeinfo open`: ingested files."""

import json
import re
import sys
import webbrowser
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import click

from codeinfo_cli import completion, options, scope, terminal
from codeinfo_cli.client import Client, connected
from codeinfo_cli.errors import NOTHING, CliError
from codeinfo_cli.terminal import counted, note, out, styled, visible

# `path:10`, `path:10-20` and `path:10-`, and what grep adds: `path:10:text`
_WITH_LINES = re.compile(r"(?s)(.+?):(\d{1,7})(?:-(\d{0,7}))?(?::.*)?")
# Rows of one call (docs/api.md)
PAGE = 1_000


def split_lines(text: str) -> tuple[str, int | None, int | None]:
    """Return path, first and last line of `path:10-20`. None: not given; without a last line, to
    the end."""
    match = _WITH_LINES.fullmatch(text)
    if match is None:
        return text, None, None
    first = int(match[2])
    last = first if match[3] is None else int(match[3]) if match[3] else None
    return match[1], first, last


@click.command()
@click.argument("path", shell_complete=completion.paths, metavar="PATH[:FIRST-LAST]")
@click.option("-L", "--lines", metavar="RANGES", help="Lines, such as 10-40,90-.")
@click.option("-p", "--plain", is_flag=True, help="Without line numbers.")
@options.repository
@options.as_json
def read(
    path: str, lines: str | None, plain: bool, repos: tuple[str, ...], every: bool, as_json: bool
) -> None:
    """Shows the ingested text, whose line numbers are those of all results. If the file on disk is
    another one by now, a message says so.

    --json without lines is the tool's answer for the whole file: of a large one, its outline and
    first lines.
    """
    name, first, last = split_lines(path)
    if first is not None:
        lines = f"{first}-{'' if last is None else last}"
    with connected() as client:
        place = scope.locate(client, name, repos)
        query = {"repository": place.repository, "path": place.path, "lines": lines or "1-"}
        if as_json:
            terminal.json_out(client.post("/tools/read-file", {**query, "lines": lines or ""}))
            return
        _show_ranges(client, query, plain=plain)


def _show_ranges(client: Client, query: Mapping[str, str], *, plain: bool) -> None:
    """Show the lines; an answer that was cut continues with the next call."""
    wanted, last = query["lines"], 0
    while True:
        answer = json.loads(client.post("/tools/read-file", {**query, "lines": wanted}))
        digits = len(str(answer["totalLines"]))
        for row in answer["results"]:
            if last and row["startLine"] > last + 1 and not plain:
                out(styled("--", "mark"))
            for number, line in enumerate(row["chunk"].split("\n"), row["startLine"]):
                text = visible(line)
                out(text if plain else f"{styled(f'{number:>{digits}}', 'line')}  {text}")
            last = row["endLine"]
        if not answer["truncated"] or not answer["results"]:
            break
        wanted = _rest(query["lines"], last + 1)
    if changed := answer.get("changed"):
        note(changed)


def _rest(ranges: str, start: int) -> str:
    """Return what is left of ranges from a line on."""
    rest = []
    for part in re.sub("[–:]", "-", ranges).split(","):
        first, dash, last = part.replace(" ", "").partition("-")
        end = last if dash else first
        if not end or int(end) >= start:
            rest.append(f"{max(int(first), start)}-{end}")
    return ",".join(rest) or f"{start}-{start}"


@click.command()
@click.argument("path", default="", metavar="[PATH]", shell_complete=completion.paths)
@click.option("-d", "--depth", type=click.IntRange(1, 20), default=1, help="Folders; 1.")
@click.option("-l", "--long", is_flag=True, help="With size, language and number of files.")
@click.option("--skipped", is_flag=True, help="The files that were left out, and why.")
@options.path_filter
@options.language
@options.repository
@options.cursor
@options.as_json
def ls(
    path: str,
    depth: int,
    long: bool,
    skipped: bool,
    globs: tuple[str, ...],
    language: str | None,
    repos: tuple[str, ...],
    every: bool,
    cursor: str,
    as_json: bool,
) -> None:
    """Lists a folder, or with -g the files that match. Folders end with a slash.

    The exit status is 1 if nothing is there. --json writes one answer of the tool: at most 1000
    rows, from --cursor on, the nextCursor of the answer before.
    """
    with connected() as client:
        query = _listing(client, path, repos, every, globs)
        query |= {"depth": depth, "skipped": skipped, "language": language or "", "limit": PAGE}
        if as_json:
            body = client.post("/tools/list-files", {**query, "cursor": cursor})
            terminal.json_out(body)
            shown = len(json.loads(body)["results"])
        else:
            shown = _show_entries(client, query, long=long or skipped)
    if not shown:
        sys.exit(NOTHING)


def _listing(
    client: Client, path: str, repos: tuple[str, ...], every: bool, globs: tuple[str, ...]
) -> dict[str, Any]:
    """Return what to list: a PATH, the current folder, or the repositories."""
    if path or not (repos or every):
        inside = scope.containing(scope.repositories(client), scope.here())
        place = scope.locate(client, path, repos) if path else inside
        if place is not None:
            folder = place.path and f"{place.path}/"
            # A file is its own path.
            filter_ = folder if _is_there(client, place.repository, folder) else place.path
            path = options.file_filter(globs, filter_)
            return {"repository": place.repository, "path": path}
    return {"repository": scope.chosen(client, repos, every), "path": options.file_filter(globs)}


def _is_there(client: Client, repository: str, path: str) -> bool:
    """Whether a file is ingested at a path, or below it."""
    query = {"repository": repository, "path": path, "limit": 1}
    return bool(json.loads(client.post("/tools/list-files", query))["results"])


def _show_entries(client: Client, query: Mapping[str, Any], *, long: bool) -> int:
    paths, shown, cursor = scope.Paths(scope.repositories(client)), 0, ""
    while True:
        answer = json.loads(client.post("/tools/list-files", {**query, "cursor": cursor}))
        for row in answer["results"]:
            path = styled(paths.of(row), "path")
            out(f"{path}  {styled(_described(row), 'dim')}" if long else path)
        sys.stdout.flush()
        shown += len(answer["results"])
        if not (cursor := answer.get("nextCursor", "")):
            break
    if not shown:
        note(answer.get("hint") or "No file is there.")
    return shown


def _described(row: Mapping[str, Any]) -> str:
    facts = [f"{row['size']:,} B"]
    if "files" in row:
        facts.append(counted(row["files"], "file"))
    facts += row.get("languages") or filter(None, [row.get("language"), row.get("reason")])
    return visible(", ".join(facts))


@click.command("open")
@click.argument("path", metavar="PATH[:LINE]", shell_complete=completion.paths)
@click.option("--print", "print_only", is_flag=True, help="Write the address, open nothing.")
@options.repository
@options.as_json
def open_(path: str, print_only: bool, repos: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Opens the page of a file, at its lines, in the browser."""
    name, first, last = split_lines(path)
    with connected() as client:
        place = scope.locate(client, name, repos)
        if not _is_there(client, place.repository, place.path):
            message = f"{place.path!r} is not ingested in {place.repository}."
            raise CliError(message, "FILE_NOT_FOUND")
    where = quote(f"{place.repository}/{place.path}".rstrip("/"))
    url = f"{client.address.url}/code/{where}"
    if first is not None:
        url += "?" + urlencode({"lines": str(first) if last == first else f"{first}-{last or ''}"})
    if as_json:
        terminal.json_out(json.dumps({"url": url}).encode())
    elif print_only or not webbrowser.open(url):
        out(url)
