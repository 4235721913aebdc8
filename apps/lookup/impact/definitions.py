"""Compares the definitions of both sides of changed files."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from apps.code.chunking import DecodedFile, chunk_file
from apps.code.syntax.pieces import whole_word
from apps.code.values import Symbol
from apps.index.parsing.finder import get_finder
from apps.lookup.deadline import Deadline
from apps.lookup.impact.types import Changed, FileSides, What

# Lines above a definition that belong to it.
DECORATORS = ("@", "#[")
MAX_TEXT = 200  # characters of a line
NAME = "\0"
WHOLE = ("added", "removed", "renamed")

Key = tuple[str, str, int]  # path and kind of a symbol, and its number among those with both


class _Side(NamedTuple):
    """The definitions of a text, and what is outside of them.

    own: by Key the lines of a definition, without those of the definitions inside of it
    around: lines outside of all definitions that are not blank
    """

    symbols: Mapping[Key, Symbol]
    own: Mapping[Key, tuple[str, ...]]
    around: tuple[str, ...]


def changed_definitions(files: Sequence[FileSides], deadline: Deadline) -> list[Changed]:
    """What has changed in some files, in their order and that of the lines. A definition that is
    there with the same lines under another name, or in another file, is renamed."""
    decoded = [_decoded(file, lines) for file in files for lines in (file.before, file.after)]
    cuts = get_finder().cuts(decoded, deadline.left)
    sides = [
        _side(file, chunk_file(file, cut).symbols if file.lines else ())
        for file, cut in zip(decoded, cuts, strict=True)
    ]
    changed: list[Changed] = []
    for number, file in enumerate(files):
        changed += _compared(file, sides[2 * number], sides[2 * number + 1])
    return _renamed(changed, _texts(files, sides))


def _decoded(file: FileSides, lines: Sequence[str] | None) -> DecodedFile:
    path = file.old_path if lines is file.before else file.path
    return DecodedFile.of(path, "\n".join(lines or ()).encode("utf-8", "replace"))


def _side(file: DecodedFile, symbols: Sequence[Symbol]) -> _Side:
    if file.kind.prose:
        symbols = ()  # headings
    keys: dict[Key, Symbol] = {}
    count: Counter[tuple[str, str]] = Counter()
    owners: list[Key | None] = [None] * len(file.lines)
    # An outer definition comes before those inside of it.
    for symbol in sorted(symbols, key=lambda one: (one.start_line, -one.end_line, len(one.path))):
        count[symbol.path, symbol.kind] += 1
        key = (symbol.path, symbol.kind, count[symbol.path, symbol.kind])
        keys[key] = symbol
        first = symbol.start_line - 1
        while first and file.lines[first - 1].lstrip().startswith(DECORATORS):
            first -= 1
        for row in range(first, min(symbol.end_line, len(owners))):
            owners[row] = key
    own: dict[Key, list[str]] = {key: [] for key in keys}
    around: list[str] = []
    for line, owner in zip(file.lines, owners, strict=True):
        if line.strip():
            (around if owner is None else own[owner]).append(line.rstrip())
    return _Side(keys, {key: tuple(lines) for key, lines in own.items()}, tuple(around))


def _compared(file: FileSides, old: _Side, new: _Side) -> Iterator[Changed]:
    for key, symbol in new.symbols.items():
        before = old.symbols.get(key)
        if before is None:
            yield _change("added", file, symbol)
        elif before.signature != symbol.signature:
            yield _change("signature", file, symbol)
        elif old.own[key] != new.own[key]:
            yield _change("body", file, symbol)
    for key, symbol in old.symbols.items():
        if key not in new.symbols:
            yield _change("removed", file, symbol)
    if rows := _differing(old.around, new.around):
        lines = file.after or file.before or ()
        at = next((at for at, line in enumerate(lines, 1) if line.rstrip() in rows), 1)
        yield Changed("file", file.path, file.old_path, "", "", at, at, _text(lines, at), rows)


def _change(what: What, file: FileSides, symbol: Symbol) -> Changed:
    is_gone = what == "removed"
    path, lines = (file.old_path, file.before) if is_gone else (file.path, file.after)
    first, last = symbol.start_line, symbol.end_line
    text = _text(lines or (), first)
    return Changed(what, path, file.old_path, symbol.path, symbol.path, first, last, text)


def _text(lines: Sequence[str], number: int) -> str:
    return lines[number - 1].strip()[:MAX_TEXT] if number <= len(lines) else ""


def _differing(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """The lines that only one side has, or has more often."""
    left, right = Counter(old), Counter(new)
    return (*(right - left), *(left - right))


# --- renamed definitions --------------------------------------------------------------------------


def _texts(files: Sequence[FileSides], sides: Sequence[_Side]) -> dict[tuple[str, str, bool], str]:
    """(path of the file, symbol, whether it is new) → its lines, with a mark for its name."""
    texts: dict[tuple[str, str, bool], str] = {}
    for number, side in enumerate(sides):
        file, is_new = files[number // 2], bool(number % 2)
        for key, symbol in side.symbols.items():
            lines = (file.after if is_new else file.before) or ()
            text = "\n".join(lines[symbol.start_line - 1 : symbol.end_line])
            path = file.path if is_new else file.old_path
            texts[path, key[0], is_new] = symbol.kind + whole_word(symbol.name).sub(NAME, text)
    return texts


def _renamed(
    changed: Sequence[Changed], texts: Mapping[tuple[str, str, bool], str]
) -> list[Changed]:
    removed = {texts[one.path, one.symbol, False]: one for one in changed if one.what == "removed"}
    gone: set[tuple[str, str]] = set()
    rows = []
    for one in changed:
        row = one
        old = removed.pop(texts[one.path, one.symbol, True], None) if one.what == "added" else None
        if old is not None:
            row = replace(one, what="renamed", old_path=old.path, old_symbol=old.symbol)
            gone.add((old.path, old.symbol))
        rows.append(row)
    rows = [row for row in rows if row.what != "removed" or (row.path, row.symbol) not in gone]
    whole = {(row.what, row.path, row.symbol) for row in rows if row.what in WHOLE}
    return [row for row in rows if not _is_inside(row, whole)]


def _is_inside(row: Changed, whole: Set[tuple[What, str, str]]) -> bool:
    """Whether what contains a definition was added, removed or renamed with it.

    whole: what, path and symbol of the definitions that were
    """
    names = row.symbol.split(".")
    above = (".".join(names[:count]) for count in range(1, len(names)))
    return row.what in WHOLE and any((row.what, row.path, name) in whole for name in above)
