"""Words of a query that no text has, though one has another word with their stem.

`Stripe` and `strip` have one stem. A word that ends in the `e` that its stem lacks is compared as a
whole, in its forms: `stripes`, `striped`, `striping`. The forms of other words are those of a stem.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from apps.core.errors import Unavailable
from apps.embedding.words import stems
from apps.index.grams import get_grams, grams_of, having, normalized
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
    names = hashes_of(map(identifier, {word, word.lower(), word.capitalize()}))
    itself = hashes_of([word.lower()])  # stands for one with accents
    return any(
        hits.start < hits.stop and (part.live is None or part.live[words.rows[hits]].any())
        for part in parts
        for words, hashes in ((part.part.words, itself), (part.part.identifiers, names))
        for hits in words.find(hashes)
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
    strings = [grams_of(normalized(form.encode())) for form in forms]
    try:
        segments = get_grams().segments()
    except Unavailable:
        return True
    for found in having(segments, strings, _any):
        pieces = _any(found.masks)
        is_common = np.bincount(pieces // found.width, minlength=1).max() > MAX_PIECES
        if is_common or any(
            part.files[file]
            for key in {found.place(piece)[0] for piece in pieces.tolist()}
            for part in parts
            for file in part.part.files_of_texts.get(key, ())
        ):
            return True
    return False


def _any(has: NDArray[np.bool_]) -> NDArray[np.intp]:
    return np.flatnonzero(has.any(axis=0))
