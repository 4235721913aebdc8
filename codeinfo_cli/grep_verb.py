"""`codeinfo grep`: exact text, with the options and the output of grep."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import click

from codeinfo_cli import completion, options, scope, terminal
from codeinfo_cli.client import Client, connected
from codeinfo_cli.errors import NOTHING
from codeinfo_cli.terminal import note, out, styled, visible

# Rows of one call, and the greatest offset (docs/api.md)
PAGE, LAST_OFFSET = 500, 100_000
LINES = click.IntRange(0, 20)


@click.command()
@click.argument("words", nargs=-1, metavar="PATTERN [PATH]...", shell_complete=completion.paths)
@click.option("-e", "--regexp", "patterns", multiple=True, metavar="PATTERN", help="Repeatable.")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case are the same.")
@click.option("-w", "--word", "--word-regexp", is_flag=True, help="Whole words only.")
@click.option("-F", "--fixed", "--fixed-strings", is_flag=True, help="Plain text.")
@click.option("-U", "--multiline", is_flag=True, help="A match may span lines.")
@click.option("-C", "--context", type=LINES, default=0, metavar="N", help="Lines around it.")
@click.option("-A", "--after-context", "after", type=LINES, metavar="N", help="Lines after it.")
@click.option("-B", "--before-context", "before", type=LINES, metavar="N", help="Lines before it.")
@click.option("-q", "--quiet", is_flag=True, help="Nothing but the exit status.")
@click.option(
    "-l", "--files", "--files-with-matches", "mode", flag_value="files", help="Only the paths."
)
@click.option("-c", "--count", "mode", flag_value="count", help="Lines of each file: path:count.")
@click.option("-m", "--max-count", type=click.IntRange(1), metavar="N", help="N of each file.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="N lines or files in all.")
@click.option("-v", "--invert-match", "inverts", is_flag=True, hidden=True)
@options.path_filter
@options.language
@options.repository
@click.option(
    "--color", "--colour", type=click.Choice(["auto", "always", "never"]), default="auto",
    help="auto: on a terminal, without NO_COLOR.",
)  # fmt: skip
@click.option("--offset", type=click.IntRange(0, LAST_OFFSET), default=0, hidden=True)
@options.cursor
@click.option(
    *("-n", "-r", "-H", "-E", "-P", "-I", "-s", "--line-number", "--recursive", "--with-filename"),
    *("--extended-regexp", "--perl-regexp", "--no-messages", "--no-heading"),
    "ignored", is_flag=True, hidden=True,
)  # fmt: skip
@options.as_json
def grep(
    words: tuple[str, ...],
    patterns: tuple[str, ...],
    after: int | None,
    before: int | None,
    quiet: bool,
    mode: str | None,
    max_count: int | None,
    limit: int | None,
    inverts: bool,
    globs: tuple[str, ...],
    language: str | None,
    repos: tuple[str, ...],
    every: bool,
    color: str,
    offset: int,
    cursor: str,
    ignored: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Looks for a regular expression (RE2) in the ingested texts. Definitions of an identifier
    come first, then lines by path.

    -n, -r, -H, -E, -P, -I and -s are accepted, as they are what it does. The exit status is 0 with
    a match, 1 without, and 2 for an error. --json writes one answer of the tool: at most 500 rows,
    from --cursor on, the nextCursor of the answer before.
    """
    if inverts:
        raise click.UsageError("-v is not supported. Filter the output: | grep -v PATTERN.")
    terminal.choose_colour(color)
    pattern, paths, flags["fixed"] = _pattern(words, patterns, flags["fixed"])
    # The tool has one number for both sides.
    after, before = (flags["context"] if n is None else n for n in (after, before))
    flags["context"] = max(after, before)
    query = {"pattern": pattern, "language": language or "", **flags}
    query["mode"] = mode or "content"
    with connected() as client:
        queries = list(_queries(client, query, paths, repos, every, globs))
        if as_json:
            start = {"limit": min(limit or PAGE, PAGE), "offset": offset, "cursor": cursor}
            count = _as_json(client, queries, start)
        else:
            lines = _Lines(pattern, flags, before, after)
            by_mode = lines.show if query["mode"] == "content" else _show_file
            show = _nothing if quiet else _Capped(by_mode, max_count)
            most = 1 if quiet else limit
            count = sum(_pages(client, search, most, show) for search in queries)
            lines.end()
    if not count:
        sys.exit(NOTHING)


def _nothing(row: Mapping[str, Any]) -> None:
    """Show nothing of a row."""


def _pattern(
    words: tuple[str, ...], patterns: tuple[str, ...], is_fixed: bool
) -> tuple[str, tuple[str, ...], bool]:
    """Return the pattern, of -e or the first word, the PATHs, and whether it is plain text."""
    if not patterns:
        if not words:
            raise click.UsageError("A PATTERN is missing.")
        return words[0], words[1:], is_fixed
    if len(patterns) == 1:
        return patterns[0], words, is_fixed
    parts = (re.escape(one) if is_fixed else f"(?:{one})" for one in patterns)
    return "|".join(parts), words, False


def _queries(
    client: Client,
    query: Mapping[str, Any],
    paths: tuple[str, ...],
    repos: tuple[str, ...],
    every: bool,
    globs: tuple[str, ...],
) -> Iterator[dict[str, Any]]:
    """Yield a query for each PATH, or one for the repositories."""
    if not paths:
        filter_ = options.file_filter(globs)
        yield {**query, "repository": scope.chosen(client, repos, every), "path": filter_}
    for path in paths:
        place = scope.locate(client, path, repos)
        filter_ = options.file_filter(globs, place.path)
        yield {**query, "repository": place.repository, "path": filter_}


def _as_json(client: Client, queries: list[dict[str, Any]], start: Mapping[str, Any]) -> int:
    if len(queries) > 1:
        raise click.UsageError("--json takes one PATH.")
    body = client.post("/tools/grep", {**queries[0], **start})
    terminal.json_out(body)
    return len(json.loads(body)["results"])


def _pages(
    client: Client, query: dict[str, Any], limit: int | None, show: Callable[[Any], None]
) -> int:
    """Show all rows of a query, page by page. Return their number."""
    shown, cursor = 0, ""
    while True:
        rows = PAGE if limit is None else min(PAGE, limit - shown)
        answer = json.loads(client.post("/tools/grep", {**query, "limit": rows, "cursor": cursor}))
        for row in answer["results"]:
            show(row)
        sys.stdout.flush()
        shown += len(answer["results"])
        cursor = answer.get("nextCursor", "")
        if not cursor or shown == limit:
            break
    if show is not _nothing:
        _say(answer, shown)
    return shown


def _say(answer: Mapping[str, Any], shown: int) -> None:
    """Write what an answer says beside its rows to stderr."""
    for name in ("stopped", "slow", "degraded"):
        if text := answer.get(name):
            note(str(text))
    if not shown and (hint := answer.get("hint")):
        note(hint)


class _Capped:
    """Shows at most `most` rows of each file, or counts of at most that; None: all."""

    def __init__(self, show: Callable[[Mapping[str, Any]], None], most: int | None) -> None:
        self._show = show
        self._most = most
        self._shown: Counter[tuple[str, str]] = Counter()

    def __call__(self, row: Mapping[str, Any]) -> None:
        file = row["repo"], row["relPath"]
        self._shown[file] += 1
        if self._most is None:
            self._show(row)
        elif self._shown[file] <= self._most:
            self._show({**row, "count": min(row["count"], self._most)} if "count" in row else row)


@cache
def _paths() -> scope.Paths:
    return scope.Paths()


def _show_file(row: Mapping[str, Any]) -> None:
    line = styled(_paths().of(row), "path")
    if "count" in row:
        line += styled(":", "mark") + str(row["count"])
    out(line)


class _Lines:
    """Shows lines that match, and lines around them, as grep does."""

    def __init__(self, pattern: str, flags: Mapping[str, Any], before: int, after: int) -> None:
        self._matches = _matcher(pattern, flags) if terminal.has_colour() else None
        self._before, self._after = before, after
        self._path, self._end = "", 0  # of the last match
        # Lines after the last match, by number, and the last of them that is shown. The rest may be
        # before the next match.
        self._rest: dict[int, str] = {}
        self._until = 0
        self._last: tuple[str, int] | None = None  # path and line number that were shown last

    def show(self, row: Mapping[str, Any]) -> None:
        path, start = _paths().of(row), row["startLine"]
        before, lines = row.get("before", []), row["chunk"].split("\n")
        if path != self._path or start <= self._end:
            self.end()
        around = self._rest | dict(enumerate(before, start - len(before)))
        for number, line in around.items():
            if number <= self._until or number >= start - self._before:
                self._line(path, number, line, "-")
        for number, line in enumerate(lines, start):
            self._line(path, number, line, ":")
        self._path, self._end = path, start + len(lines) - 1
        self._until = self._end + self._after
        self._rest = dict(enumerate(row.get("after", []), self._end + 1))

    def end(self) -> None:
        """Show what is left of the lines after the last match."""
        for number, line in self._rest.items():
            if number <= self._until:
                self._line(self._path, number, line, "-")
        self._rest, self._until = {}, 0

    def _line(self, path: str, number: int, line: str, separator: str) -> None:
        is_apart = self._last is not None and self._last != (path, number - 1)
        if is_apart and (self._before or self._after):
            out(styled("--", "mark"))
        mark = styled(separator, "mark")
        text = self._marked(line) if separator == ":" else visible(line)
        out(f"{styled(path, 'path')}{mark}{styled(str(number), 'line')}{mark}{text}")
        self._last = path, number

    def _marked(self, line: str) -> str:
        """The line, visible, with its matches in colour."""
        if self._matches is None:
            return visible(line)
        parts, end = [], 0
        for start, until in self._matches(line):
            if until > start >= end:
                parts += [visible(line[end:start]), styled(visible(line[start:until]), "match")]
                end = until
        return "".join([*parts, visible(line[end:])])


def _matcher(
    pattern: str, flags: Mapping[str, Any]
) -> Callable[[str], Iterator[tuple[int, int]]] | None:
    """Return a function that finds the matches in a line, with the server's library."""
    import re2  # noqa: PLC0415 - only for colours

    source = re2.escape(pattern) if flags["fixed"] else pattern
    source = rf"\b(?:{source})\b" if flags["word"] else source
    settings = re2.Options()
    settings.case_sensitive = not flags["ignore_case"]
    settings.log_errors = False
    try:
        compiled = re2.compile(source, settings)
    except re2.error:
        return None
    return lambda line: (match.span() for match in compiled.finditer(line))
