"""Files and symbols by a part of their name, as one types it."""

from collections.abc import Iterator, Sequence
from itertools import islice

from django.db.models import Case, IntegerField, Value, When

from apps.core.errors import Unavailable
from apps.index import queries
from apps.index.models import Root, SourceFile
from apps.index.symbols import symbols_beginning
from apps.lookup.symbols.definitions import OUTLINE_ONLY, Hit, rank_of
from apps.lookup.symbols.types import SEPARATORS, Place
from apps.retrieval.overlaps import repeated_files

# Symbols of a root that begin with a text, of which the best are chosen.
MAX_SYMBOLS = 300
MIN_SYMBOL = 2  # characters


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


def _escaped(text: str) -> str:
    """Text as a regular expression of any database: other characters than words in brackets."""
    return "".join(char if char.isalnum() or char == "_" else _bracketed(char) for char in text)


def _bracketed(character: str) -> str:
    return rf"\{character}" if character in "^\\]" else f"[{character}]"


def symbols_named(text: str, limit: int) -> list[Hit]:
    """Definitions whose name begins with a text, in any case: whole names first. After a separator
    (`Client.get`) the scope has to match, too. Parts that are lost are left out."""
    *scopes, prefix = [part for part in SEPARATORS.split(text.strip()) if part] or [""]
    if len(prefix) < MIN_SYMBOL or any(map(str.isspace, prefix)):
        return []
    roots = queries.published_roots()
    repeated = repeated_files(roots)
    hits = [
        hit
        for root in roots
        for hit in _beginning(root, prefix)
        if hit.symbol.file_path not in repeated.get(root.id, ()) and _is_inside(hit, scopes)
    ]

    def rank(hit: Hit) -> tuple[object, ...]:
        name = hit.symbol.name
        whole = name != prefix, name.lower() != prefix.lower()
        return (*whole, *rank_of(hit.symbol), len(name))

    return sorted(hits, key=rank)[:limit]


def _beginning(root: Root, prefix: str) -> Iterator[Hit]:
    try:
        symbols = symbols_beginning(root, prefix, MAX_SYMBOLS)
    except Unavailable:
        return
    live = queries.live_file_ids(root)
    for symbol in symbols:
        if symbol.kind not in OUTLINE_ONLY and symbol.source_file in live:
            yield Hit(root, symbol)


def _is_inside(hit: Hit, scopes: Sequence[str]) -> bool:
    around = [part.lower() for part in SEPARATORS.split(hit.symbol.path)[:-1]]
    return not scopes or around[-len(scopes) :] == [scope.lower() for scope in scopes]
