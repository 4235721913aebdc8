"""The words that a text is found by, and the identifiers that stand in it.

A word is a stem as the built-in embedder has it (`parseURLs` → pars, url). An identifier of several
parts is a word as a whole too, without underscores and in lower case, so that `HTTPAdapter`,
`http_adapter` and `httpadapter` find each other. What has letters outside ASCII is a word as it
stands, in lower case.
"""

from collections.abc import Iterator
from itertools import chain

from apps.embedding.words import LONGEST_WORD, RunCache, Runs, stem, stems

runs = Runs(r"\w")  # of letters, digits and underscores
LONGEST_WHOLE = 64  # longer runs are keys and hashes, which nobody asks for


def words(text: str) -> Iterator[str]:
    """The words of a text, as often as they stand in it."""
    return chain.from_iterable(map(words_of.__getitem__, runs(text)))


def is_identifier(run: str) -> bool:
    """Whether a run may name something: `x1` and `_get`, not `3`, `0x1f` or a key."""
    return 1 < len(run) <= LONGEST_WHOLE and not run[0].isdigit()


def _words_in(run: str) -> tuple[str, ...]:
    parts = tuple(stems(run))
    if len(run) > LONGEST_WHOLE or (len(parts) < 2 and run.isascii()):
        return parts
    whole = run.replace("_", "").lower()
    return (*parts, whole if len(whole) > LONGEST_WORD else stem(whole))


words_of = RunCache(_words_in)
