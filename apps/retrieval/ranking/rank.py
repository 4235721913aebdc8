"""Scores and order of passages: pure functions over numpy columns.

query + passages -> z-scores of cosine and BM25, mixed -> bonus for names that a passage declares
                 -> passages pooled by file -> bonus for the file name, penalties -> order

BM25 scores come from the parts of the index (apps/index/lexical).
"""

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from apps.code import paths
from apps.embedding.words import stems
from apps.index.lexical import has_other_scripts, is_unspaced, words
from apps.retrieval.ranking.mixing import mix, pooled
from apps.retrieval.ranking.types import Passages, Scores
from apps.retrieval.ranking.weights import WEIGHTS, Weights

STOPWORDS = frozenset(
    stems(
        "a an the of for in on to and or how is are does do did with from by at what where which "
        "that this it its as be when into through via using not if can why who whose than then "
        "there here was were has have had should would could will between each other"
    )
)
# An identifier with its qualifiers: `Session`, `Sinatra::Base`, `z.pipe`, `list->map`.
NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|->|[.#])[A-Za-z_$][\w$]*)*")
WORD = re.compile(r"[A-Za-z_$][\w$]*")
QUALIFIER = re.compile(r"::|->|[.#]")
# Forms that no word of a sentence has: camelCase, snake_case, qualified, HTTPError.
IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|_|::|->|[.#]\w\w|^[A-Z]{2,}[a-z]")
# Score of a declared name that the query contains exactly, in another case, or in another style
# (`readFile` for `read_file`).
EXACT, OTHER_CASE, SAME_STEMS = 1.0, 0.8, 0.6
# The agreement of a name that a page shows as a reason.
AGREES = 0.5
# Shares of a query's idf that a passage beyond the cutoff must contain: of one stem, of several.
MOST, SOME = 0.5, 0.2
# A word is rare if its idf is this share of the idf of a word that no passage has: if about one of
# the square root of all passages has it.
RARE = 0.5
# As in `results`: a third passage of a file would take the place of another file.
MAX_PER_FILE = 2
# More than any score.
ABOVE_ALL = 1e9


@lru_cache(maxsize=50_000)
def stems_of(name: str) -> frozenset[str]:
    """The stems of a declared name or of a path component."""
    return frozenset(_words_of(name))


def _words_of(text: str) -> Iterator[str]:
    """The stems of a text; the words of the index if it has letters outside ASCII."""
    return words(text) if has_other_scripts(text) else stems(text)


# Stems of words that ask for files of a kind. If a query contains one, that kind has no penalty.
KIND_STEMS: Mapping[str, frozenset[str]] = {
    kind: stems_of(words)
    for kind, words in {
        "test": "test testing mock spec fixture",
        "example": "example demo sample tutorial bench benchmark",
        "prose": "doc document documentation readme guide tutorial changelog",
        "data": "config configure configuration yaml toml css html workflow",
        "legacy": "legacy compat compatibility deprecate obsolete shim polyfill vendor",
    }.items()
}


# --- the query ------------------------------------------------------------------------------------


@lru_cache(maxsize=100)
def query_stems(text: str) -> tuple[str, ...]:
    """The distinct stems of a query without stopwords."""
    return drop_stopwords(_words_of(text))


def drop_stopwords(names: Iterable[str]) -> tuple[str, ...]:
    """The distinct words or stems that are not stopwords; all of them if all are stopwords."""
    distinct = tuple(dict.fromkeys(names))
    return tuple(word for word in distinct if word not in STOPWORDS) or distinct


@dataclass(frozen=True)
class RankingQuery:
    """The query as the ranking needs it."""

    text: str
    stems: frozenset[str]  # without stopwords
    idf: Mapping[str, float]  # by stem
    max_idf: float  # the idf of a stem that no passage contains
    weight: float  # the sum of `idf`, without pairs of letters that no passage has
    names: frozenset[str]  # identifiers in the text, without qualifiers
    is_name: bool  # the text is one identifier
    roots: frozenset[Hashable] = frozenset()  # roots of passages that the text names
    absent: frozenset[str] = frozenset()  # words of which passages have only the stem

    @classmethod
    def of(
        cls,
        text: str,
        frequencies: Mapping[str, int] | None = None,
        total: int = 0,
        roots: frozenset[Hashable] = frozenset(),
        absent: frozenset[str] = frozenset(),
    ) -> "RankingQuery":
        """`frequencies` are document frequencies by stem in `total` passages. Without them the idf
        of every stem is 1."""
        counts = frequencies or {}
        idf = {stem: _idf(min(counts.get(stem, 0), total), total) for stem in query_stems(text)}
        most = _idf(0, total)
        # Without spaces, most pairs of letters that no passage has are no words.
        known = [v for stem, v in idf.items() if not total or v < most or not is_unspaced(stem)]
        names = frozenset(_names(text))
        return cls(
            text=text,
            stems=frozenset(idf),
            idf=idf,
            max_idf=most,
            weight=sum(known),
            names=names,
            is_name=bool(names) and len(text.split()) == 1,
            roots=roots,
            absent=absent,
        )

    def agreement(self, name: frozenset[str]) -> float:
        """How well a name agrees with the query, 0 to 1: the F1 score of their stems.

        Precision is the share of the name's stems that are in the query, recall the share of the
        query's stems that are in the name. Each stem is weighted by its idf.
        """
        if self.stems.isdisjoint(name):
            return 0.0
        common = name & self.stems
        overlap = sum([self.idf[stem] for stem in common])
        name_weight = overlap + self.max_idf * (len(name) - len(common))
        return 2 * overlap / (name_weight + self.weight)

    def is_answered_by(self, text: str) -> bool:
        """Return True if a passage is lexical evidence. `text` is its text, symbol and path.

        It contains an identifier that the query asks for, most of the query's stems (weighted by
        their idf), or at least two of them that are not all common.
        """
        named = set(WORD.findall(text))
        if not self.names.isdisjoint(named):
            return True
        if has_other_scripts(self.text) or has_other_scripts(text):
            common = self.stems.intersection(words(text))
        else:
            common = self.stems & stems_of(" ".join(named))
        share = sum([self.idf[stem] for stem in common]) / (self.weight or 1)
        return share > MOST or (len(common) > 1 and share > SOME)

    @cached_property
    def missing_words(self) -> tuple[str, ...]:
        """The words of the text that no passage has, without stopwords. Right only if the document
        frequencies are known."""
        return tuple(
            word for word, stems in self._stems_of_words.items() if self._lacks(word, stems)
        )

    @cached_property
    def lacks_rare_words(self) -> bool:
        """Whether words are missing, and all others are common: passages have nothing to do with
        the query. Right only if the document frequencies are known."""
        others = (
            stems for word, stems in self._stems_of_words.items() if not self._lacks(word, stems)
        )
        rarest = max((self.idf[stem] for stems in others for stem in stems), default=0.0)
        return bool(self.missing_words) and rarest < RARE * self.max_idf

    def _lacks(self, word: str, stems: frozenset[str]) -> bool:
        return word in self.absent or all(self.idf[stem] >= self.max_idf for stem in stems)

    @cached_property
    def _stems_of_words(self) -> Mapping[str, frozenset[str]]:
        """Of each distinct word of the text, its stems without stopwords, if there are any."""
        stems_of_words = {word: stems_of(word) & self.stems for word in NAME.findall(self.text)}
        return {word: stems for word, stems in stems_of_words.items() if stems}

    @cached_property
    def stems_of_names(self) -> frozenset[frozenset[str]]:
        """The stems of each identifier in the query."""
        return frozenset(map(stems_of, self.names))

    def has_any(self, stems: frozenset[str]) -> bool:
        return not stems.isdisjoint(self.stems)


def _names(text: str) -> list[str]:
    """The identifiers in a query, without qualifiers. A query of one word is an identifier."""
    names = NAME.findall(text)
    alone = len(text.split()) == 1
    return [QUALIFIER.split(name)[-1] for name in names if alone or IDENTIFIER.search(name)]


def _idf(count: int, total: int) -> float:
    """BM25's idf with 1 added inside the logarithm, so that it is never negative.

    Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """
    return math.log(1 + (total - count + 0.5) / (count + 0.5)) if total else 1.0


# --- the order ------------------------------------------------------------------------------------


def rank(query: RankingQuery, passages: Passages, weights: Weights = WEIGHTS) -> list[int]:
    """Indexes of passages, best first, at most MAX_PER_FILE of a file; ties keep their order.

    A passage ranks by the score of its file, less a penalty for each better passage of that file.
    Passages with evidence come first, those with more before those with less.
    """
    scores = passage_scores(query, passages, weights)
    scores_of_files = file_scores(query, passages, scores, weights)
    evidence = passages.evidence
    best, positions = best_of_files(passages.file_of, scores + ABOVE_ALL * evidence)
    final = scores_of_files[passages.file_of[best]] - weights.repeat_penalty * positions
    order: list[int] = best[np.lexsort((best, -final, -evidence[best]))].tolist()
    return order


def best_of_files(
    file_of: NDArray[np.intp], scores: Scores
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indexes of the MAX_PER_FILE best passages of each file, and the position of each in its file,
    best first, from 0."""
    by_file = np.lexsort((-scores, file_of))
    files = file_of[by_file]
    positions = np.arange(len(files)) - np.searchsorted(files, files)
    best = positions < MAX_PER_FILE
    return by_file[best], positions[best]


# --- passages -------------------------------------------------------------------------------------


def passage_scores(query: RankingQuery, passages: Passages, weights: Weights) -> Scores:
    """Mixed z-scores (n), raised if a passage declares a name that the query contains."""
    share = weights.semantic_weight_of_name if query.is_name else weights.semantic_weight
    similarity = 1 - passages.distances / 2  # the cosine
    scores = mix(similarity, passages.words, share)
    matcher = NameMatcher(query)
    for index, names in enumerate(passages.names):
        # Most passages declare no name of the query. This check is cheap.
        if near := list(filter(matcher.is_near, names.split())):
            agreement = max(map(query.agreement, map(stems_of, near)))
            scores[index] += weights.definition * matcher.score(near) + weights.names * agreement
    return scores


class NameMatcher:
    """Compares declared names with the identifiers of a query."""

    def __init__(self, query: RankingQuery) -> None:
        self._query = query
        self._lower = {name.lower() for name in query.names}
        words = query.stems.union(self._lower, *query.stems_of_names)
        # Without its last letter, as the stem of `entries` is `entry`.
        self._beginnings = tuple({word.removesuffix("y") for word in words})

    def is_near(self, name: str) -> bool:
        """Whether a name may have a word of the query: without its stems, which take longer."""
        lower = name.lower()
        return any(map(lower.__contains__, self._beginnings)) or not name.isascii()

    def matching(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these names that the query asks for, or that agree with it well."""
        return tuple(
            name
            for name in names
            if self._score(name) or self._query.agreement(stems_of(name)) >= AGREES
        )

    def score(self, names: Iterable[str]) -> float:
        """The score of the best of these names, 0 to 1."""
        return max(map(self._score, names)) if self._lower else 0.0

    def _score(self, name: str) -> float:
        if name in self._query.names:
            return EXACT
        if name.lower() in self._lower:
            return OTHER_CASE
        return SAME_STEMS if stems_of(name) in self._query.stems_of_names else 0.0


# --- files ----------------------------------------------------------------------------------------


def lowered(query: RankingQuery, path: str) -> tuple[str, ...]:
    """The kinds of a file for which the ranking lowers it: `test`, `example`, …"""
    kinds = _kinds(query, path)
    return tuple(k for k, stems in KIND_STEMS.items() if k in kinds and not query.has_any(stems))


def file_scores(
    query: RankingQuery, passages: Passages, scores: Scores, weights: Weights
) -> Scores:
    """The score of each file (m). `scores` (n) are those of the passages."""
    penalties = _Penalties(query, passages, weights)
    by_path = [
        name_score(query, path, weights)
        + weights.named_repository * (root in query.roots)
        - penalties.of(file)
        for file, (root, path) in enumerate(passages.files)
    ]
    by_passages = pooled(scores, passages.file_of, len(by_path), weights.pool)
    return by_passages + np.array(by_path, np.float64)


def name_score(query: RankingQuery, path: str, weights: Weights) -> float:
    """The bonus for the file name: agreement, and equality with an identifier of the query."""
    name = _path_facts(path).name
    is_named = name in query.stems_of_names
    return weights.file_name * query.agreement(name) + weights.file_of_name * is_named


def _kinds(query: RankingQuery, path: str, *, is_record: bool = False) -> frozenset[str]:
    """The kinds of a file. One that the query names, with its extension, is no data."""
    kinds, name = _path_facts(path).kinds, path.rpartition("/")[2]
    if "." in name and name in query.text:
        return kinds - {"data"}
    return kinds | {"data"} if is_record else kinds


class PathFacts(NamedTuple):
    """Facts of a file that its path shows."""

    kinds: frozenset[str]  # `test`, `example`, …: keys of KIND_STEMS
    name: frozenset[str]  # stems of the descriptive name
    is_index: bool  # `__init__.py`, `index.ts`, …


@lru_cache(maxsize=20_000)
def _path_facts(path: str) -> PathFacts:
    name = stems_of(paths.descriptive_name(path))
    return PathFacts(paths.kinds(path), name, paths.is_index(path))


class _Penalties:
    """Penalties of files, by their kind and by the files beside them."""

    def __init__(self, query: RankingQuery, passages: Passages, weights: Weights) -> None:
        self._query = query
        self._weights = weights
        self._passages = passages
        known = ~np.isnan(passages.distances)
        has_vector = np.bincount(passages.file_of[known], minlength=len(passages.files)) > 0
        # Files of which no passage has a vector are data. None, if the query has no vector.
        self._records = ~has_vector & known.any()
        self._kinds = {kind for kind, stems in KIND_STEMS.items() if not query.has_any(stems)}
        by_root: dict[Hashable, set[str]] = defaultdict(set)
        for root, path in passages.files:
            by_root[root].add(path)
        self._declarations = {root: paths.declarations_beside(p) for root, p in by_root.items()}
        self._superseded = {root: paths.superseded(p, query.text) for root, p in by_root.items()}

    def of(self, file: int) -> float:
        """The sum of the penalties of a file, by its index."""
        (root, path), weights = self._passages.files[file], self._weights
        total, facts = 0.0, _path_facts(path)
        kinds = _kinds(self._query, path, is_record=self._records[file])
        for kind in kinds & self._kinds:
            total += getattr(weights, kind)
        if path in self._declarations[root]:
            total += weights.declaration
        if path in self._superseded[root]:
            total += weights.superseded
        if facts.is_index and file not in self._declaring:
            total += weights.reexport
        return total

    @cached_property
    def _declaring(self) -> set[int]:
        """The files with a passage that declares a name."""
        pairs = zip(self._passages.file_of.tolist(), self._passages.names, strict=True)
        return {file for file, names in pairs if names}
