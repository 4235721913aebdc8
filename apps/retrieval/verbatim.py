"""Passages with the words of a query as they stand: messages, quotations, formats filled in.

Two neighbouring words with what is between them are looked up in the n-gram index. Where a literal
has a gap that was filled in, or goes on in the next line, only the pairs there fail. The pieces of
texts with most pairs are read, and passages are compared word by word.
"""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice, pairwise, repeat
from operator import and_

import numpy as np
import re2
from numpy.typing import NDArray

from apps.core.errors import Unavailable
from apps.embedding.words import stems
from apps.index.grams import Having, get_grams, grams_of, having, normalized
from apps.index.mapped.part import LivePart
from apps.index.texts import get_texts
from apps.retrieval.ranking.rank import STOPWORDS

log = logging.getLogger("codeinfo.retrieval")

Mask = NDArray[np.bool_]
Numbers = NDArray[np.intp]

MIN_WORDS, MAX_WORDS = 3, 60  # of a query
# Pairs that a passage must have, and the share of the words that are in them: in literals; or
# anywhere, as comments have some pairs of many questions.
MIN_PAIRS, MIN_SHARE = 2, 0.7
MIN_PAIRS_ANYWHERE, MIN_SHARE_ANYWHERE = 3, 0.9
# Pieces that are looked for in the searched parts, best first, and those that are read.
MAX_CANDIDATES, MAX_READ = 1_000, 16
_RUN = re.compile(r"\w+")
# What was probably filled in: it need not be in a passage.
_FILLED_IN = re2.compile(r"\"[^\"]*\"|\B'[^']*'\B|`[^`]*`|\[[^\]]*\]|/[\w./-]*|\b\d[\w.]*")
_AFTER_QUOTE = re.compile("[\"'`](.*)")


class _Phrase:
    """The words of a query, and its pairs of neighbours."""

    def __init__(self, text: str) -> None:
        text = text.strip("\"'` \n")  # a quotation as a whole is no value
        words = list(_RUN.finditer(text))[:MAX_WORDS]
        values = [match.span() for match in _FILLED_IN.finditer(text)]
        self.is_value = [
            any(start <= word.start() < end for start, end in values) for word in words
        ]
        self.is_stopword = [STOPWORDS.issuperset(stems(word[0])) for word in words]
        self.pairs = [text[a.start() : b.end()] for a, b in zip(words, words[1:], strict=False)]
        self._normal = [_normal(pair) for pair in self.pairs]
        self._words = [word[0].lower() for word in words]
        self._is_fixed = ~np.array(self.is_value, np.bool_)

    @cached_property
    def least_words(self) -> float:
        """The words that a literal must have: one may be a value without a mark, as long as the
        words that it lacks are side by side."""
        return MIN_SHARE * (self.is_value.count(False) - 1)

    @cached_property
    def least(self) -> int:
        """The pairs that a passage must have."""
        fixed = (not (a or b) for a, b in zip(self.is_value, self.is_value[1:], strict=False))
        return max(1, min(MIN_PAIRS, sum(fixed)))

    def enough(self, has: Mask) -> Numbers:
        """The texts that may be evidence. has: bool (pairs, texts)"""
        covered = np.zeros((len(self.is_value), has.shape[1]), np.bool_)
        covered[:-1] = has
        covered[1:] |= has
        enough = np.flatnonzero(_counts(covered[self._is_fixed]) >= self.least_words)
        return enough[_counts(has[:, enough]) >= self.least] if len(enough) else enough

    def share(self, text: str) -> float:
        """The share of the words that are in pairs of a text. It is evidence, or 0."""
        lower = text.lower()
        has = [word in lower for word in self._words]
        # Most texts lack words of too many pairs. This check is cheap.
        if sum(map(and_, has, has[1:])) < self.least:
            return 0.0
        normal, literals = _normal(text), _normal(" ".join(_AFTER_QUOTE.findall(text)))
        least = MIN_SHARE_ANYWHERE * self.is_value.count(False)
        share = self._share(normal, MIN_PAIRS_ANYWHERE, least)
        return share or self._share(literals, self.least, self.least_words)

    def _share(self, text: str, pairs: int, words: float) -> float:
        """words: without values, that must be in pairs"""
        has = [pair in text for pair in self._normal]
        if sum(has) < pairs:
            return 0.0
        is_covered = [a or b for a, b in zip([False, *has], [*has, False], strict=True)]
        facts = list(zip(is_covered, self.is_value, self.is_stopword, strict=True))
        if not any(covered and not (value or stopword) for covered, value, stopword in facts):
            return 0.0
        fixed = [covered for covered, value, _ in facts if not value]
        if sum(fixed) < words or (sum(fixed) < MIN_SHARE * len(fixed) and _gaps(fixed) > 1):
            return 0.0
        return sum(is_covered) / len(facts)


@dataclass(frozen=True)
class _Piece:
    """Some bytes of a file of a part that may have pairs."""

    part: int
    file: int
    key: bytes  # SHA-256 of its text
    start: int
    end: int


def verbatim_shares(parts: Sequence[LivePart], text: str) -> Mapping[tuple[int, int], float]:
    """The share of a query's words that passages have verbatim, up to 1, by part and row. Those
    with little of it are left out."""
    phrase = _Phrase(text)
    if len(phrase.is_value) < MIN_WORDS:
        return {}
    try:
        pieces = _pieces(parts, phrase)
        texts = get_texts().read_bytes({piece.key.hex() for piece in pieces})
    except Unavailable as error:
        log.warning("no verbatim search: %s", error.message)
        return {}
    found: dict[tuple[int, int], float] = {}
    for piece in pieces:
        for row, passage in _passages(parts[piece.part], piece, texts.get(piece.key.hex(), b"")):
            if share := phrase.share(passage):
                found[piece.part, row] = share
    return found


def _pieces(parts: Sequence[LivePart], phrase: _Phrase) -> list[_Piece]:
    """The pieces of live files with most of the pairs, rarer ones before others. Raises
    Unavailable."""
    texts = {part.part.name: part.part.files_of_texts.keys() for part in parts}
    segments = [segment for segment in get_grams().segments() if segment.is_about(texts)]
    strings = [grams_of(normalized(pair.encode())) for pair in phrase.pairs]
    found = having(segments, strings, phrase.enough)
    pieces: list[_Piece] = []
    for key, start, end in islice(_best_first(found, phrase), MAX_CANDIDATES):
        for number, part in enumerate(parts):
            files = part.part.files_of_texts.get(key, ())
            pieces += [_Piece(number, file, key, start, end) for file in files if part.files[file]]
        if len(pieces) >= MAX_READ:
            break
    return pieces


def _best_first(found: Iterable[Having], phrase: _Phrase) -> Iterator[tuple[bytes, int, int]]:
    """The places of the pieces that may be evidence."""
    values: list[float] = []
    pieces: list[tuple[Having, int]] = []
    for some in found:
        masks = some.masks
        enough = phrase.enough(masks)
        sizes = np.array([segment.pieces for segment in some.segments])
        idf = np.log(1 + sizes / np.maximum(some.counts, 1))
        values += np.sum(idf[:, enough // some.width] * masks[:, enough], axis=0).tolist()
        pieces += zip(repeat(some), enough.tolist())
    order = np.argsort(-np.array(values), kind="stable").tolist()
    for _, tied in groupby(order, values.__getitem__):
        yield from sorted(some.place(piece) for some, piece in map(pieces.__getitem__, tied))


def _passages(part: LivePart, piece: _Piece, data: bytes) -> Iterator[tuple[int, str]]:
    """Row and text of the chunks that overlap a piece."""
    text = data.decode("utf-8", "replace")
    start = len(data[: piece.start].decode("utf-8", "ignore"))
    end = len(data[: piece.end].decode("utf-8", "ignore"))
    first, last = part.part.starts[piece.file : piece.file + 2]
    spans = part.part.spans(slice(first, last)).tolist()
    for row, (_, _, offset, length) in enumerate(spans, first):
        if offset < end and start < offset + length:
            yield row, text[offset : offset + length]


def _gaps(is_covered: Sequence[bool]) -> int:
    """The number of runs of words that are not covered."""
    return sum(not now and before for before, now in pairwise([True, *is_covered]))


def _counts(has: Mask) -> NDArray[np.uint8]:
    """How many of some words or pairs each text has. has: bool (n, texts)"""
    counts: NDArray[np.uint8] = np.add.reduce(has, axis=0, dtype=np.uint8)
    return counts


def _normal(text: str) -> str:
    return " ".join(text.lower().split())
