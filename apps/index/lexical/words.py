"""The tokenizer of the index.

A word is a stem as in the built-in embedder (`parseURLs` → pars, url). An identifier of several
parts is also a word as a whole, in lower case and without underscores, so that `HTTPAdapter`,
`http_adapter` and `httpadapter` find each other.

Letters outside ASCII are folded: case and accents do not count, ß is ss, ё is е, ı is i, and ł is
l. An umlaut is also read as two letters (`größe` → gross, groess). In scripts that put no spaces
between words, each two neighbours are a word, beside the whole run (UAX 29 leaves them to
dictionaries): the words of `未来函数` are 未来, 来函, 函数, 未来函数. So it is in Korean,
which appends particles.
"""

import re
from collections.abc import Iterator
from itertools import chain, pairwise
from unicodedata import category, normalize

from apps.embedding.words import BOUNDARY, LONGEST_WORD, RunCache, Runs, stem, stems_of

# Python's \w has no vowel signs of Indic scripts and no combining accents.
_MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if category(chr(code))[0] == "M")
runs = Runs(rf"[\w{_MARKS}]")  # runs of letters, digits and underscores
# Thai and Lao, Burmese, Khmer, kana, Han, Hangul.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_SEGMENT = re.compile(rf"([{_UNSPACED}]+)|(?:[^\W\d_{_UNSPACED}]|[{_MARKS}])+|\d+")
_PAIRED = re.compile(f"[{_UNSPACED}]")
_ACCENTS = re.compile("[\u0300-\u036f]+")
# Letters that Unicode does not take apart.
_PLAIN = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe"})
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
LONGEST_WHOLE = 64  # longer runs are keys and hashes


def words(text: str) -> Iterator[str]:
    """Yield the words of a text in order, with repetitions."""
    return chain.from_iterable(map(words_of.__getitem__, runs(text)))


def is_identifier(run: str) -> bool:
    """Whether a run can be an identifier: `x1` and `_get`, but not `3`, `0x1f` or a key."""
    return 1 < len(run) <= LONGEST_WHOLE and not run[0].isdigit()


def words_in(run: str) -> tuple[str, ...]:
    """The words of a run. `words_of` remembers them."""
    if not run.isascii():
        return _words_of_any_script(run)
    if "_" in run:
        parts = tuple(chain.from_iterable(map(stems_of.__getitem__, run.split("_"))))
    else:
        parts = stems_of[run]
    if len(run) > LONGEST_WHOLE or len(parts) < 2:
        return parts
    return (*parts, _whole(run.replace("_", "").lower()))


def _words_of_any_script(run: str) -> tuple[str, ...]:
    lower = normalize("NFKC", normalize("NFKC", BOUNDARY.sub(" ", run)).casefold())
    found: list[str] = []
    segments = list(_SEGMENT.finditer(lower))
    for segment in segments:
        if segment[1]:
            found += _pairs(segment[0])
        else:
            readings = (_folded(segment[0]), _folded(segment[0].translate(_UMLAUTS)))
            found += dict.fromkeys(chain.from_iterable(map(_forms, readings)))
    if len(segments) > 1 and len(run) <= LONGEST_WHOLE:
        found.append(_whole(_folded(lower.replace("_", "").replace(" ", ""))))
    return tuple(found)


def _forms(word: str) -> tuple[str, ...]:
    """The stem, and the word if its stem lacks the last `e` (`retrieval.whole_words`)."""
    short = stem(word)
    return (short, word) if word == f"{short}e" else (short,)


def _pairs(run: str) -> list[str]:
    """Each two neighbours in a run, and the run if it is longer."""
    pairs = [first + second for first, second in pairwise(run)]
    return [*pairs, run] if len(run) != 2 and len(run) <= LONGEST_WHOLE else pairs


def _folded(word: str) -> str:
    """The word without accents. Vowel signs and the marks of kana stay: they are no accents."""
    return normalize("NFC", _ACCENTS.sub("", normalize("NFD", word))).translate(_PLAIN)


def _whole(word: str) -> str:
    return word if len(word) > LONGEST_WORD else stem(word)


def is_unspaced(word: str) -> bool:
    """Whether a word is of a script that puts no spaces between words. It may have no meaning."""
    return _PAIRED.match(word) is not None


def has_other_scripts(text: str) -> bool:
    """Whether a text has letters outside ASCII."""
    return not text.isascii() and _OTHER.search(text) is not None


_OTHER = re.compile(rf"[^\W\x00-\x7f]|[{_MARKS}]")


words_of = RunCache(words_in)
