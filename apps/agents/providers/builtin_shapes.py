"""What "Search only" says to a question that has a shape: Markdown of the rows of the answer."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from apps.browse import graph
from apps.core.types import JSON
from apps.tools.forms import place

# Kind of rows → the line above them.
_HEADS = {
    "caller": "Called by",
    "reference": "Lines with the name",
    "test": "Tests",
    "implementation": "Extended, implemented or overridden by",
    "step": "The calls, one after the other",
    "entry point": "Where it starts",
    "route": "Routes",
    "frame": "Lines of the trace, innermost first",
    "importer": "Imported by",
    "commit": "Where these lines come from, latest first",
    "setting": "Lines that give it a value",
    "readme": "What the README says",
    "build": "To build it",
    "tests": "To test it",
    "run": "To start it",
    "imported": "What most files import",
}
_POSSIBLE = {
    "caller": "Possible callers, by name",
    "test": "Tests that may be about it, by name",
    "implementation": "Possible ones, by name",
    "route": "Routes that fit its end",
    "frame": "Lines that the trace names, in files that may have changed",
}
# Rows of these kinds are by name only, and their head says so.
_COMMANDS = frozenset({"build", "tests", "run"})
_BY_NAME = frozenset({"reference", "setting"})


def by_shape(answer: JSON, quote: Callable[[JSON], str]) -> Iterator[str]:
    """Yield the answer in Markdown, a part at a time: definitions as code, the other rows as lists
    of citations, a picture of the calls, languages, modules, and what was not found.

    quote: the passage that begins with a definition, quoted; "" if there is none
    """
    rows: Sequence[JSON] = answer["rows"]
    defines_only = answer["shape"] == "file"
    readmes = [row for row in rows if row["kind"] == "readme"]
    yield from _of_rows(readmes, quote, defines_only=defines_only)
    for head in ("languages", "modules"):
        if texts := answer.get(head):
            yield f"{head.capitalize()}:\n\n{_texts(texts)}\n\n"
    yield from _of_rows(rows[len(readmes) :], quote, defines_only=defines_only)
    for note in answer.get("notes", ()):
        yield f"{note}\n\n"


def _of_rows(
    rows: Sequence[JSON], quote: Callable[[JSON], str], *, defines_only: bool
) -> Iterator[str]:
    for (kind, is_proven), group in groupby(rows, key=_group):
        every = list(group)
        if kind == "definition" and not defines_only:
            for row in every:
                yield f"{quote(row) or _definition(row)}\n\n"
        else:
            items = "\n".join(map(_item, every))
            yield f"{_head(kind, is_proven)}:\n\n{items}\n\n"
        if kind in ("caller", "step") and _is_last(rows, every[-1], kind):
            yield _picture([row for row in rows if row["kind"] == kind], rows)


def _group(row: JSON) -> tuple[str, bool]:
    return row["kind"], row["certainty"] == "proven" or row["kind"] in _BY_NAME | {"entry point"}


def _is_last(rows: Sequence[JSON], row: JSON, kind: str) -> bool:
    return row is [one for one in rows if one["kind"] == kind][-1]


def _head(kind: str, is_proven: bool) -> str:
    head = _HEADS.get(kind, "Defined there")
    return head if is_proven else _POSSIBLE.get(kind, f"{head}, possibly")


def _definition(row: JSON) -> str:
    """A definition as its citation, and a fence with exactly the cited lines."""
    is_plain = re.fullmatch(r"[\w.:#$<>-]+", row.get("symbol") or "")
    name = f" (definition of {row['symbol'][:40]})" if is_plain else ""
    return f"{_cited(row)}{name}\n\n{fenced(row['chunk'], row.get('language') or '')}"


def _item(row: JSON) -> str:
    """`path:12-12` in `Client.get`: `return self.send(request)`"""
    symbol, of = row.get("symbol"), row.get("of")
    # A definition or an implementation is what its symbol names.
    word = "" if row["kind"] in ("definition", "implementation") else " in"
    within = f"{word} {inline(symbol)}" if symbol else ""
    if row["kind"] in _COMMANDS and of:
        within = f" {inline(of)}"
    if row["kind"] in ("entry point", "route") and of:
        within = f" {inline(of)}{f' by {inline(symbol)}' if symbol else ''}"
    if row["kind"] == "imported":
        within = f"; it has {inline(symbol)}" if symbol else ""
        return f"- {_cited(row)} is {of}{within}"
    if row["kind"] == "commit":
        return f"- {_cited(row)}: {_escaped(of or '')}"
    if row["kind"] == "readme":
        return f"- {_cited(row)}: {_escaped(row['chunk'])}"
    if row["kind"] == "step":
        within = f" {inline(symbol or 'the top level')} calls {inline(of or '')}"
    first = row["chunk"].split("\n")[0].strip()
    if of and row["kind"] in _COMMANDS and of in first:
        first = ""  # it is said already
    return f"- {_cited(row)}{within}{f': {inline(first)}' if first else ''}"


def _texts(texts: Sequence[str]) -> str:
    """`src/flask/`: 24 files, python: app, cli"""
    parts = (text.partition(":") for text in texts)
    return "\n".join(f"- {inline(name)}:{_escaped(rest)}" for name, _, rest in parts)


def _escaped(text: str) -> str:
    """A text of a file in which no character has a meaning in Markdown."""
    return re.sub(r"([\\`*_\[\]<>&~|$])", r"\\\1", text)


def _cited(row: JSON) -> str:
    return inline(place(row["repo"], row["relPath"], row["startLine"], row["endLine"]))


def _picture(calls: Sequence[JSON], rows: Sequence[JSON]) -> str:
    """A fence with the calls, which the page draws."""
    defined = {
        row["symbol"]: row for row in rows if row["kind"] == "definition" and "symbol" in row
    }
    # A place is that of the definition, if the answer has it; otherwise of the first call.
    called = {row.get("of") or "": row for row in reversed(calls)}
    places = called | {row.get("symbol", ""): row for row in reversed(calls)} | defined
    arcs = []
    for row in calls:
        symbol, of = row.get("symbol") or "", row.get("of") or ""
        if of:
            start = _node(symbol or row["relPath"].rpartition("/")[2], row)
            proven = row["certainty"] == "proven"
            arcs.append(graph.Arc(start, _node(of, places[of]), proven))
    return f"```{graph.FENCE}\n{graph.written(arcs)}\n```\n\n" if arcs else ""


def _node(name: str, row: JSON) -> graph.Node:
    return graph.Node(name, f"{row['repo']}/{row['relPath']}", row["startLine"])


def inline(text: str) -> str:
    """Return Markdown inline code, with enough backticks for those in the text."""
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{' '.join(text.splitlines())}{pad}{ticks}"


def fenced(text: str, language: str) -> str:
    """Return Markdown of lines of code, with a fence that is longer than those in the text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    plain = re.sub(r"[^\w+#.-]", "", language).lower()
    return f"{fence}{plain}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    """The length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)
