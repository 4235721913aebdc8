"""What else a reader of some passages needs: definitions of the names in them, callers, tests."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, zip_longest
from operator import itemgetter
from typing import NamedTuple, TypeVar

from apps.code.paths import kinds
from apps.code.values import Symbol
from apps.core.errors import Unavailable
from apps.core.values.slices import slices
from apps.embedding.words import Runs, stems
from apps.index.models import Root
from apps.index.symbols import (
    definitions_of_names,
    files_with_identifier,
    lines_defining,
    outline_of,
)
from apps.index.types import Area, Filters, StoredSymbol
from apps.lookup.deadline import Deadline
from apps.lookup.symbols import SymbolQuery
from apps.lookup.symbols.call_types import Caller, CallersQuery
from apps.lookup.symbols.callers import callers_in
from apps.lookup.symbols.definitions import MINOR, OUTLINE_ONLY
from apps.lookup.symbols.project import LiveFile, has_rules, root_files, texts_of_live
from apps.lookup.symbols.types import LAST_FILES, SEPARATORS, Place
from apps.retrieval.query import is_inside
from apps.retrieval.ranking.rank import query_stems, stems_of
from apps.tools.context.packing import DULL
from apps.tools.context.types import Piece, Role

# Identifiers of the passages that are looked up, so many at once: few answers have room for the
# definitions of all.
MAX_NAMES, NAMES_AT_ONCE = 40, 20
# A name with more definitions than this is too common to say which one is used.
MAX_DEFINITIONS = 2
# Definitions of a name, tests included, that are looked at to tell.
MAX_LISTED = 24
# Kinds of symbols that are called.
CALLED = frozenset({"function", "method", "class", "macro"})
# Kinds of symbols that are not looked at.
_ASIDE = OUTLINE_ONLY | MINOR
# Lines at the beginning of a definition.
DEFINITION_LINES = 8
# Definitions and callers whose lines are read at once.
ITEMS_AT_ONCE = 8
# Callers of one name. If none is known: files, and files of tests, in which lines have it, and the
# lines of a file.
MAX_CALLERS, MAX_FILES, MAX_OF_FILE = 30, 6, 4
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w{2,80}\b")
_words = Runs(r"\w")
Item = TypeVar("Item")


class Span(NamedTuple):
    """Lines of a file."""

    path: str
    start: int  # 1-based
    length: int


def definitions(root: Root, passages: Sequence[Piece], question: str) -> Iterator[Piece]:
    """The beginnings of the definitions of names that `passages` use and do not define: names with
    words of the question first. The passages are of files of `root`."""
    symbols = (
        symbol
        for of_name in _defined(root, _names(passages, question))
        if not any(_begins_in(symbol, passages) for symbol in of_name)
        for symbol in of_name
    )
    for symbol, text in _with_lines(root, symbols, _beginning):
        yield Piece(
            Place(root, symbol.file_path, symbol.language),
            symbol.start_line,
            text or symbol.signature,
            "definition",
            symbol=symbol.path,
            of=symbol.name,
            is_cut=symbol.end_line - symbol.start_line >= DEFINITION_LINES,
        )


def _beginning(symbol: StoredSymbol) -> Span:
    count = symbol.end_line - symbol.start_line + 1
    return Span(symbol.file_path, symbol.start_line, min(count, DEFINITION_LINES))


def _with_lines(
    root: Root, items: Iterable[Item], span_of: Callable[[Item], Span]
) -> Iterator[tuple[Item, str]]:
    """Items with their lines, which are read as items are taken; "" if they cannot be read."""
    files = root_files(root).files
    for some in slices(items, ITEMS_AT_ONCE):
        spans = [span_of(item) for item in some]
        live = {span.path: files[span.path] for span in spans if span.path in files}
        texts = texts_of_live(root, live.values())
        for item, (path, start, length) in zip(some, spans, strict=True):
            text = texts.get(live[path].document, "") if path in live else ""
            lines = text.split("\n", start - 1 + length)[start - 1 : start - 1 + length]
            yield item, "\n".join(line.removesuffix("\r") for line in lines)


class Subject(NamedTuple):
    """A definition that passages are about."""

    name: str  # without qualifiers
    path: str
    line: int  # 1-based; 0 if only its name is known


def uses(
    root: Root, subject: Subject, areas: tuple[Area, ...], deadline: Deadline
) -> Iterator[Piece]:
    """Lines of `root` that call a definition, and those of tests: of different files first, then
    proven calls. Lines with its name, if no call of it can be told by the deadline. All in these
    areas."""
    file = root_files(root).files.get(subject.path)
    if subject.line and file and has_rules(subject.path, file.language):
        query = SymbolQuery(subject.name, limit=MAX_CALLERS, filters=Filters(areas=areas))
        called = CallersQuery(query, path=subject.path, line=subject.line)
        if callers := callers_in(root, called, deadline):
            for call, text in _with_lines(root, _in_turn(callers), _line_of):
                yield _use(call.place, call.line, text, subject.name, call.symbol)
            return
    yield from _lines_with(root, subject, areas)


def _line_of(caller: Caller) -> Span:
    return Span(caller.place.path, caller.line, 1)


def _in_turn(callers: Iterable[Caller]) -> list[Caller]:
    """The first caller of each file, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    order: list[tuple[int, Caller]] = []
    for caller in callers:
        seen[caller.place.path] += 1
        order.append((seen[caller.place.path], caller))
    return [caller for _, caller in sorted(order, key=itemgetter(0))]


def _use(place: Place, line: int, text: str, name: str, symbol: str = "") -> Piece:
    role: Role = "test" if "test" in kinds(place.path) else "caller"
    return Piece(place, line, text, role, symbol=symbol, of=name)


def _lines_with(root: Root, subject: Subject, areas: Sequence[Area]) -> Iterator[Piece]:
    """Lines with the name of a definition in code, without parsing it: of MAX_FILES files, and of
    as many tests, in turn. Comments, imports and definitions are left out as far as lines tell."""
    live = root_files(root).files
    files: list[tuple[str, LiveFile]] = []
    counts = {True: 0, False: 0}
    for document, path in files_with_identifier(root, subject.name).items():
        if min(counts.values()) >= MAX_FILES:
            break
        file, of_path = live.get(path), kinds(path)
        is_test = "test" in of_path
        if file is None or file.document != document or counts[is_test] >= MAX_FILES:
            continue
        if "prose" not in of_path and is_inside(areas, root, path):
            counts[is_test] += 1
            files.append((path, file))
    texts = texts_of_live(root, (file for _, file in files))
    name = subject.name
    defined = lines_defining(root, name, texts.keys())

    def using(path: str, file: LiveFile) -> Iterator[Piece]:
        place = Place(root, path, file.language)
        for number, line in _lines_having(texts.get(file.document, ""), name):
            is_dull = line.lstrip().startswith(DULL) or name not in _words(line)
            if not is_dull and (file.document, number) not in defined:
                yield _use(place, number, line, name)

    of_files = (islice(using(path, file), MAX_OF_FILE) for path, file in files)
    return filter(None, chain.from_iterable(zip_longest(*of_files)))


def _lines_having(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that contain a name. Most lines of a file do not: it is not
    split."""
    number, at = 1, 0  # `at` is in line `number`
    while (place := text.find(name, at)) >= 0:
        start = text.rfind("\n", 0, place) + 1
        number += text.count("\n", at, start)
        at = text.find("\n", place)
        if at < 0:
            at = len(text)
        yield number, text[start:at].removesuffix("\r")


def subjects(root: Root, passages: Iterable[Piece], question: str) -> Iterator[Subject]:
    """The definitions that the passages are about: in each passage the one whose name has most
    words of the question, else the one that contains it."""
    wanted = set(query_stems(question))

    def value(symbol: Symbol) -> tuple[int, bool]:
        return len(wanted.intersection(stems(symbol.name))), symbol.kind in CALLED

    names: set[str] = set()
    for piece in passages:
        best = max(_defined_in(root, piece), key=value, default=None)
        name = SEPARATORS.split(piece.symbol)[-1].strip()
        line = 0
        if best and (value(best)[0] or not name or name == best.name):
            name, line = best.name, _line_of_name(piece, best)
        if _IDENTIFIER.fullmatch(name) and name not in names:
            names.add(name)
            yield Subject(name, piece.place.path, line)


def _line_of_name(piece: Piece, symbol: Symbol) -> int:
    """The line of a definition that has its name, after decorators and comments; 0 if it is not in
    the passage."""
    lines = piece.text.split("\n")
    for line in range(symbol.start_line, min(symbol.end_line, piece.end_line) + 1):
        if symbol.name in lines[line - piece.start_line]:
            return line
    return 0


def _defined_in(root: Root, piece: Piece) -> list[StoredSymbol]:
    """The definitions that begin in a passage."""
    file = root_files(root).files.get(piece.place.path)
    try:
        lines = piece.start_line, piece.end_line
        outline = outline_of(root, file.document, lines) if file else []
    except Unavailable:
        return []
    return [symbol for symbol in outline if symbol.kind not in _ASIDE]


def _names(passages: Sequence[Piece], question: str) -> list[str]:
    """The names in passages, without those of the definitions that contain them."""
    own = {SEPARATORS.split(piece.symbol)[-1].strip() for piece in passages}
    text = "\n".join(piece.text for piece in passages)
    words = (word for word in dict.fromkeys(_words(text)) if word not in own)
    names = list(filter(_IDENTIFIER.fullmatch, words))
    wanted = set(query_stems(question))
    first = [name for name in names if not wanted.isdisjoint(stems_of(name))]
    return list(dict.fromkeys([*first[:MAX_NAMES], *names[: MAX_NAMES + len(first)]]))[:MAX_NAMES]


def _begins_in(symbol: StoredSymbol, passages: Sequence[Piece]) -> bool:
    return any(
        piece.place.path == symbol.file_path
        and piece.start_line <= symbol.start_line <= piece.end_line
        for piece in passages
    )


def _found(root: Root, names: Sequence[str]) -> Iterator[list[StoredSymbol]]:
    """The definitions of each name, NAMES_AT_ONCE read at once; none after an error."""
    with suppress(Unavailable):
        for some in slices(names, NAMES_AT_ONCE):
            yield from definitions_of_names(root, some, MAX_LISTED).values()


def _defined(root: Root, names: Sequence[str]) -> Iterator[list[StoredSymbol]]:
    """The definitions of each name that has not too many to tell which is meant."""
    live = root_files(root).files
    for symbols in _found(root, names):
        meant = (
            symbol
            for symbol in symbols
            if (file := live.get(symbol.file_path)) is not None
            and symbol.source_file == file.document
            and symbol.kind not in _ASIDE
            and not kinds(symbol.file_path) & LAST_FILES
        )
        own = list(islice(meant, MAX_DEFINITIONS + 1))
        if len(own) <= MAX_DEFINITIONS:
            yield own
