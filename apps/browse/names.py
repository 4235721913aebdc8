"""Files and symbols by a part of their name, as one types it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from difflib import SequenceMatcher, get_close_matches
from heapq import nsmallest
from itertools import islice
from math import inf
from operator import itemgetter

from django.db.models import Case, IntegerField, Value, When

from apps.core.errors import Unavailable
from apps.index import queries, symbols
from apps.index.models import Root, SourceFile
from apps.index.types import StoredSymbol
from apps.lookup.symbols.definitions import OUTLINE_ONLY, Hit, rank_of
from apps.lookup.symbols.types import SEPARATORS, Place
from apps.lookup.texts.table import file_table
from apps.retrieval.overlaps import repeated_files

# Symbols of a root that begin with a text or are spelled like it, of which the best are chosen.
MAX_SYMBOLS = 300
MIN_SYMBOL = 2  # characters
# Of a word that may be misspelled: its characters, and the least likeness, from 0 to 1.
MIN_ALIKE, ALIKE = 4, 0.5
MAX_ALIKE = 8  # such words; more are a sentence and no name, and take seconds


def files_named(text: str, limit: int) -> list[Place]:
    """Files whose path has all words of a text, in any case: first those whose name begins with the
    first word, then those with a folder that does."""
    roots = {root.id: root for root in queries.published_roots()}
    words = text.replace("\\", "/").split()
    if not roots or not words:
        return []
    files = SourceFile.objects.filter(root__in=list(roots)).live().ingested()
    for word in words:
        files = files.filter(path__icontains=word)
    # The name is what follows the last slash: no other slash may come after the word.
    name = rf"(^|/){_escaped(words[0])}[^/]*$"
    rank = Case(
        When(path__iregex=name, then=Value(0)),
        When(path__istartswith=words[0], then=Value(1)),
        When(path__icontains=f"/{words[0]}", then=Value(1)),
        default=Value(2),
        output_field=IntegerField(),
    )
    rows = files.annotate(rank=rank).order_by("rank", "path")
    repeated = repeated_files(list(roots.values()))
    most = limit + sum(map(len, repeated.values()))
    best = rows.values_list("root_id", "path", "language")[:most]
    places = (
        Place(roots[root_id], path, language)
        for root_id, path, language in best.iterator()
        if path not in repeated.get(root_id, ())
    )
    return list(islice(places, limit))


def files_alike(text: str, limit: int) -> list[Place]:
    """Files whose name is spelled like one of the words of a text, with folders for the others,
    best first."""
    roots = queries.published_roots()
    repeated = repeated_files(roots)
    pieces = text.replace("\\", "/").replace("/", " ").lower().split()
    pairs = {piece: _pairs(piece) for piece in pieces if len(piece) >= MIN_ALIKE}
    best: list[tuple[float, int, str, Place]] = []
    for root in roots if 0 < len(pairs) <= MAX_ALIKE else ():
        for file in file_table(root).files:
            name = file.path.rpartition("/")[2].lower()
            if not any(_alikeness(piece, own, name) >= ALIKE for piece, own in pairs.items()):
                continue
            score = _score(pieces, pairs, file.path.lower().split("/"))
            if score and file.path not in repeated.get(root.id, ()):
                place = Place(root, file.path, file.language)
                best.append((-score, len(file.path), file.path, place))
    return [place for *_, place in nsmallest(limit, best, key=itemgetter(0, 1, 2))]


def _score(pieces: Sequence[str], pairs: Mapping[str, Set[str]], parts: Sequence[str]) -> float:
    """How well each piece fits a part of a path, added up; 0 if one fits none."""
    scores = [
        max(
            1.0 if piece in part else _alikeness(piece, pairs.get(piece, frozenset()), part)
            for part in parts
        )
        for piece in pieces
    ]
    return sum(scores) if min(scores) >= ALIKE else 0.0


def _alikeness(piece: str, own: Set[str], name: str) -> float:
    """The share of the pairs of neighbouring characters that two names have in common (Dice), from
    0 to 1. Suffixes count if the piece has one."""
    name = name if "." in piece else name.partition(".")[0]
    # Looking for pairs takes a third of the time of listing those of the name.
    return 2 * sum(map(name.__contains__, own)) / (len(own) + max(1, len(name) - 1))


def _pairs(text: str) -> Set[str]:
    return {text[n : n + 2] for n in range(len(text) - 1)}


def _escaped(text: str) -> str:
    """Text as a regular expression of any database: other characters than words in brackets."""
    return "".join(char if char.isalnum() or char == "_" else _bracketed(char) for char in text)


def _bracketed(character: str) -> str:
    return rf"\{character}" if character in "^\\]" else f"[{character}]"


def symbols_named(text: str, limit: int) -> list[Hit]:
    """Definitions whose name begins with a text, in any case: whole names first. After a separator
    (`Client.get`) the scope has to match, too. Parts that are lost are left out."""
    *scopes, prefix = _parts(text)
    if len(prefix) < MIN_SYMBOL or any(map(str.isspace, prefix)):
        return []
    wanted = [scope.lower() for scope in scopes]

    def rank(hit: Hit) -> tuple[object, ...]:
        name = hit.symbol.name
        whole = name != prefix, name.lower() != prefix.lower()
        return (*whole, *rank_of(hit.symbol), len(name))

    hits = _hits(prefix, symbols.symbols_beginning)
    inside = (hit for hit in hits if not scopes or _scopes(hit)[-len(scopes) :] == wanted)
    return sorted(inside, key=rank)[:limit]


def symbols_alike(text: str, limit: int, until: float) -> list[Hit]:
    """Definitions whose name and scopes are spelled like those of a text, best first. Repositories
    are read until a time."""
    *scopes, name = _parts(text.lower())
    if len(name) < MIN_ALIKE or any(map(str.isspace, name)):
        return []

    def rank(hit: Hit) -> tuple[object, ...]:
        likeness = SequenceMatcher(None, hit.symbol.name.lower(), name).ratio()
        return (-likeness, *rank_of(hit.symbol))

    hits = _hits(name, symbols.symbols_alike, until)
    inside = (
        hit for hit in hits if all(get_close_matches(scope, _scopes(hit), 1) for scope in scopes)
    )
    return sorted(inside, key=rank)[:limit]


def _parts(text: str) -> list[str]:
    """The scopes and the name in a text, at least a name."""
    return [part for part in SEPARATORS.split(text.strip()) if part] or [""]


def _hits(
    name: str,
    look_up: Callable[[Root, str, int], Sequence[StoredSymbol]],
    until: float = inf,
) -> Iterator[Hit]:
    roots = queries.published_roots()
    repeated = repeated_files(roots)
    for root in roots:
        if time.monotonic() >= until:
            return
        try:
            looked_up = look_up(root, name, MAX_SYMBOLS)
        except Unavailable:
            continue
        live = queries.live_file_ids(root)
        for symbol in looked_up:
            is_repeated = symbol.file_path in repeated.get(root.id, ())
            if not is_repeated and symbol.kind not in OUTLINE_ONLY and symbol.source_file in live:
                yield Hit(root, symbol)


def _scopes(hit: Hit) -> list[str]:
    return [part.lower() for part in SEPARATORS.split(hit.symbol.path)[:-1]]
