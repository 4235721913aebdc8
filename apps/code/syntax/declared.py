"""The declarations of a file: each name with its kind, symbol path and lines."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from apps.code.syntax.code import Code
from apps.code.syntax.kinds import kind_in
from apps.code.syntax.outline import MAX_SIGNATURE, Captures, Name, key_of, last_row, scopes_around
from apps.code.syntax.pieces import Declaration, Outline

# Grammars in which one function is written as several consecutive definitions.
BY_EQUATIONS = frozenset({"haskell", "erlang", "elixir"})


def declarations(code: Code, captures: Captures, found: Outline) -> list[Declaration]:
    """The declarations of a file in order of appearance. `found` is the outline of `captures`."""
    declared = _each(captures, found, code.source)
    return list(_joined(declared) if code.grammar in BY_EQUATIONS else declared)


def _each(captures: Captures, found: Outline, source: bytes) -> Iterator[Declaration]:
    scopes = list(captures.scopes)
    index_of = {key: index for index, key in enumerate(scopes)}
    innermost = scopes_around(scopes, captures.names)
    for name, enclosing in zip(captures.names.values(), innermost, strict=True):
        key = name.scope or (key_of(name.whole) if name.whole else None)
        own = index_of.get(key, -1) if key else -1
        parent = found.definitions[own].parent if own >= 0 else enclosing
        if name.text:
            yield _declaration(name, own, parent, found, source)


def _declaration(name: Name, own: int, parent: int, found: Outline, source: bytes) -> Declaration:
    """The declaration of a name. `own` and `parent` are the indexes of its definition and of the
    enclosing one, or -1."""
    definition = found.definitions[own] if own >= 0 else None
    kind = kind_in(name.kind, name.text, found.definitions[parent].kind if parent >= 0 else "")
    if definition and definition.label.endswith(name.text):
        path = found.path(own)
    else:
        path = found.separator.join(filter(None, (found.path(parent), name.text)))
    if definition:
        first, last, signature = definition.first, definition.last, definition.signature
    elif name.whole:
        node = name.whole
        first, last = node.start_point.row, last_row(node)
        signature = _first_line(source, node.start_byte, node.end_byte)
    else:
        first, last, signature = name.row, name.row, ""
    return Declaration(name.text, path, kind, first + 1, last + 1, signature)


def _first_line(source: bytes, start: int, end: int) -> str:
    head = source[start : min(end, start + 2 * MAX_SIGNATURE)].decode("utf-8", "replace")
    return " ".join(head.partition("\n")[0].split())[:MAX_SIGNATURE].rstrip(" {[(:=")


def _joined(each: Iterable[Declaration]) -> Iterator[Declaration]:
    """Join consecutive declarations with one path; the kind is that of the last."""
    for _, group in groupby(each, key=attrgetter("path")):
        first, *others = group
        last = others[-1] if others else first
        yield first._replace(kind=last.kind, end=last.end)
