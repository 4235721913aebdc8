"""Words of a query that no text has, though one has another word with their stem.

`Stripe` and `strip` have one stem. A word that ends in the `e` that its stem lacks is compared as a
whole, in its forms: `stripes`, `striped`, `striping`. The forms of other words are those of a stem.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from apps.core.errors import Unavailable
from apps.embedding.words import stems
from apps.index.grams import Strings, get_grams, grams_of, normalized
from apps.index.mapped.part import LivePart
from apps.index.mapped.words import hashes_of, identifier

# Pieces that are looked for in the searched parts: more say that a word is common.
MAX_PIECES = 1_000


def absent_words(parts: Sequence[LivePart], words: Iterable[str]) -> frozenset[str]:
    """Those of some words that no text and no path has."""
    return frozenset(
        word
        for word in words
        if (forms := _forms(word)) and not (_as_it_is(parts, word) or _in_any_form(parts, forms))
    )


def _forms(word: str) -> tuple[str, ...]:
    """The forms of a word in lower case; () if they are those of its stem."""
    lower = word.lower()
    if not (lower.isalpha() and lower.isascii() and [*stems(lower)] == [lower[:-1]]):
        return ()
    return (lower, f"{lower[:-1]}ing") if lower.endswith("e") else ()


def _as_it_is(parts: Sequence[LivePart], word: str) -> bool:
    """Whether a text has the word by itself: the quick check, which most words pass."""
    names = {word, word.lower(), word.capitalize()}
    # The word itself stands for one with accents.
    hashes = hashes_of([*map(identifier, names), word.lower()])
    return any(
        hits.start < hits.stop
        and (part.live is None or part.live[part.part.words.rows[hits]].any())
        for part in parts
        for hits in part.part.words.find(hashes)
    )


def _in_any_form(parts: Sequence[LivePart], forms: Sequence[str]) -> bool:
    """Whether a text or a path has a form, also within a name."""
    live = (
        file
        for part in parts
        for file, is_live in zip(part.part.files, part.files.tolist(), strict=True)
        if is_live
    )
    if any(form in file.path.lower() for file in live for form in forms):
        return True
    strings = Strings([grams_of(normalized(form.encode())) for form in forms])
    try:
        segments = get_grams().segments()
    except Unavailable:
        return True
    for segment in segments:
        if (masks := segment.having(strings)) is None:
            continue
        pieces = np.flatnonzero(masks.any(axis=0))
        keys = segment.keys[segment.spans_of(pieces[:MAX_PIECES]).texts].tolist()
        if len(pieces) > MAX_PIECES or any(
            part.files[file]
            for key in set(keys)
            for part in parts
            for file in part.part.files_of_texts.get(key.ljust(32, b"\0"), ())
        ):
            return True
    return False
