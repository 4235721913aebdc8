"""The tokenizer of the index.

A word is a stem as in the built-in embedder (`parseURLs` → pars, url). An identifier of several
parts is also a word as a whole, in lower case and without underscores, so that `HTTPAdapter`,
`http_adapter` and `httpadapter` find each other. A run with letters outside ASCII is one word, in
lower case.
"""

from collections.abc import Iterator
from itertools import chain

from apps.embedding.words import LONGEST_WORD, RunCache, Runs, stem, stems

runs = Runs(r"\w")  # runs of letters, digits and underscores
LONGEST_WHOLE = 64  # longer runs are keys and hashes


def words(text: str) -> Iterator[str]:
    """Yield the words of a text in order, with repetitions."""
    return chain.from_iterable(map(words_of.__getitem__, runs(text)))


def is_identifier(run: str) -> bool:
    """Whether a run can be an identifier: `x1` and `_get`, but not `3`, `0x1f` or a key."""
    return 1 < len(run) <= LONGEST_WHOLE and not run[0].isdigit()


def _words_in(run: str) -> tuple[str, ...]:
    parts = tuple(stems(run))
    if len(run) > LONGEST_WHOLE or (len(parts) < 2 and run.isascii()):
        return parts
    whole = run.replace("_", "").lower()
    return (*parts, whole if len(whole) > LONGEST_WORD else stem(whole))


words_of = RunCache(_words_in)
