"""Scores and order of passages: pure functions over numpy columns.

query + passages -> z-scores of cosine and BM25, mixed -> bonus for names that a passage declares
                 -> passages pooled by file -> bonus for the file name, penalties -> order

BM25 scores come from the parts of the index (apps/index/lexical).
"""

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from apps.code import paths
from apps.embedding.words import stems
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
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|->|[.#])[A-Za-z_$][\w$]*)*")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_QUALIFIER = re.compile(r"::|->|[.#]")
# Forms that no word of a sentence has: camelCase, snake_case, qualified, HTTPError.
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|_|::|->|[.#]\w\w|^[A-Z]{2,}[a-z]")
# Score of a declared name that the query contains exactly, in another case, or in another style
# (`readFile` for `read_file`).
EXACT, OTHER_CASE, SAME_STEMS = 1.0, 0.8, 0.6
# The agreement of a name that a page shows as a reason.
AGREES = 0.5
# Shares of a query's idf that a passage beyond the cutoff must contain: of one stem, of several.
MOST, SOME = 0.5, 0.2
# As in `results`: a third passage of a file would take the place of another file.
MAX_PER_FILE = 2
# More than any score.
ABOVE_ALL = 1e9


@lru_cache(maxsize=50_000)
def stems_of(name: str) -> frozenset[str]:
    """The stems of a declared name or of a path component."""
    return frozenset(stems(name))


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


def query_stems(text: str) -> tuple[str, ...]:
    """The distinct stems of a query without stopwords."""
    return drop_stopwords(stems(text))


def drop_stopwords(words: Iterable[str]) -> tuple[str, ...]:
    """The distinct words or stems that are not stopwords; all of them if all are stopwords."""
    distinct = tuple(dict.fromkeys(words))
    return tuple(word for word in distinct if word not in STOPWORDS) or distinct


@dataclass(frozen=True)
class RankingQuery:
    """The query as the ranking needs it."""

    text: str
    stems: frozenset[str]  # without stopwords
    idf: Mapping[str, float]  # by stem
    max_idf: float  # the idf of a stem that no passage contains
    weight: float  # the sum of `idf`
    names: frozenset[str]  # identifiers in the text, without qualifiers
    is_name: bool  # the text is one identifier
    roots: frozenset[Hashable] = frozenset()  # roots of passages that the text names

    @classmethod
    def of(
        cls,
        text: str,
        frequencies: Mapping[str, int] | None = None,
        total: int = 0,
        roots: frozenset[Hashable] = frozenset(),
    ) -> "RankingQuery":
        """`frequencies` are document frequencies by stem in `total` passages. Without them the idf
        of every stem is 1."""
        counts = frequencies or {}
        idf = {stem: _idf(min(counts.get(stem, 0), total), total) for stem in query_stems(text)}
        names = frozenset(_names(text))
        return cls(
            text=text,
            stems=frozenset(idf),
            idf=idf,
            max_idf=_idf(0, total),
            weight=sum(idf.values()),
            names=names,
            is_name=bool(names) and len(text.split()) == 1,
            roots=roots,
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
        words = set(_WORD.findall(text))
        if not self.names.isdisjoint(words):
            return True
        common = self.stems & stems_of(" ".join(words))
        share = sum([self.idf[stem] for stem in common]) / (self.weight or 1)
        return share > MOST or (len(common) > 1 and share > SOME)

    @cached_property
    def missing_words(self) -> tuple[str, ...]:
        """The words of the text that no passage has, without stopwords. Right only if the document
        frequencies are known."""
        known = {stem for stem, idf in self.idf.items() if idf < self.max_idf}
        return tuple(
            word
            for word in dict.fromkeys(_NAME.findall(self.text))
            if (of_word := frozenset(stems(word)) - STOPWORDS) and known.isdisjoint(of_word)
        )

    @cached_property
    def sole_names(self) -> frozenset[str]:
        """The unqualified identifiers of a query that asks for nothing else."""
        own = frozenset[str]().union(*self.stems_of_names)
        is_all = self.stems <= own and not _QUALIFIER.search(self.text)
        return self.names if is_all else frozenset()

    @cached_property
    def stems_of_names(self) -> frozenset[frozenset[str]]:
        """The stems of each identifier in the query."""
        return frozenset(map(stems_of, self.names))

    def has_any(self, stems: frozenset[str]) -> bool:
        return not stems.isdisjoint(self.stems)


def _names(text: str) -> list[str]:
    """The identifiers in a query, without qualifiers. A query of one word is an identifier."""
    names = _NAME.findall(text)
    alone = len(text.split()) == 1
    return [_QUALIFIER.split(name)[-1] for name in names if alone or _IDENTIFIER.search(name)]


def _idf(count: int, total: int) -> float:
    """BM25's idf with 1 added inside the logarithm, so that it is never negative.

    Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """
    return math.log(1 + (total - count + 0.5) / (count + 0.5)) if total else 1.0


# --- the order ------------------------------------------------------------------------------------


def rank(query: RankingQuery, passages: Passages, weights: Weights = WEIGHTS) -> list[int]:
    """Indexes of passages, best first, at most MAX_PER_FILE of a file; ties keep their order.

    A passage ranks by the score of its file, less a penalty for each better passage of that file.
    If the query asks for an identifier and nothing else, passages that declare it come first.
    """
    scores = passage_scores(query, passages, weights)
    scores_of_files = file_scores(query, passages, scores, weights)
    wanted = query.sole_names
    declares = np.array([not wanted.isdisjoint(names) for names in passages.names], np.bool_)
    best, positions = best_of_files(passages.file_of, scores + ABOVE_ALL * declares)
    final = scores_of_files[passages.file_of[best]] - weights.repeat_penalty * positions
    order: list[int] = best[np.lexsort((best, -final, ~declares[best]))].tolist()
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
        facts = _name_facts(names)
        # Most passages declare no name of the query. This check is cheap.
        if not matcher.words.isdisjoint(facts.words):
            agreement = max(map(query.agreement, facts.stems))
            scores[index] += weights.definition * matcher.score(names) + weights.names * agreement
    return scores


def mix(similarity: ArrayLike, words: ArrayLike, share: float) -> Scores:
    """share · z(similarity) + (1 - share) · z(BM25). If one of the two is nan, the other alone; if
    both are, 0.

    Scores are mixed rather than ranks, as in reciprocal rank fusion (Cormack, Clarke and Büttcher
    2009), because scores also show by how much one candidate is better than the next.
    """
    by_similarity, by_words = standardised(similarity), standardised(words)
    mixed = share * by_similarity + (1 - share) * by_words
    mixed = np.where(np.isnan(by_words), by_similarity, mixed)
    scores: Scores = np.nan_to_num(np.where(np.isnan(by_similarity), by_words, mixed))
    return scores


def standardised(values: ArrayLike) -> Scores:
    """z-scores: differences from the mean in standard deviations. nan stays nan and is left out of
    mean and deviation."""
    column = np.asarray(values, np.float64)
    numbers = column[~np.isnan(column)]
    if not numbers.size:
        return column
    # The constant avoids a division by 0 if all values are equal.
    scores: Scores = (column - numbers.mean()) / (numbers.std() + 1e-9)
    return scores


class NameMatcher:
    """Compares declared names with the identifiers of a query."""

    def __init__(self, query: RankingQuery) -> None:
        self._query = query
        self._lower = {name.lower() for name in query.names}
        # A passage whose names have none of these words cannot match.
        self.words = query.stems.union(self._lower, *query.stems_of_names)

    def matching(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of these names that the query asks for, or that agree with it well."""
        return tuple(
            name
            for name in names
            if self._score(name) or self._query.agreement(stems_of(name)) >= AGREES
        )

    def score(self, names: tuple[str, ...]) -> float:
        """The score of the best of these names, 0 to 1."""
        return max(map(self._score, names)) if self._lower else 0.0

    def _score(self, name: str) -> float:
        if name in self._query.names:
            return EXACT
        if name.lower() in self._lower:
            return OTHER_CASE
        return SAME_STEMS if stems_of(name) in self._query.stems_of_names else 0.0


class NameFacts(NamedTuple):
    """Facts of the names that one passage declares."""

    stems: tuple[frozenset[str], ...]  # of each name
    words: frozenset[str]  # the stems of all names, and the names in lower case


@lru_cache(maxsize=20_000)
def _name_facts(names: tuple[str, ...]) -> NameFacts:
    of_names = tuple(map(stems_of, names))
    return NameFacts(of_names, frozenset(map(str.lower, names)).union(*of_names))


# --- files ----------------------------------------------------------------------------------------


def lowered(query: RankingQuery, path: str) -> tuple[str, ...]:
    """The kinds of a file for which the ranking lowers it: `test`, `example`, …"""
    kinds = _path_facts(path).kinds
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


def pooled(scores: Scores, file_of: NDArray[np.intp], files: int, temperature: float) -> Scores:
    """The log-sum-exp of each file's passage scores, at a temperature; at 0 their maximum.

    A file that matches in several places is about the subject; a file that matches once may only
    mention it. Passages far below the best add nothing, so long files have no advantage.
    """
    best = np.full(files, -np.inf)
    np.maximum.at(best, file_of, scores)
    if temperature <= 0:
        return best
    relative = np.exp((scores - best[file_of]) / temperature)
    log_sum_exp: Scores = best + temperature * np.log(np.bincount(file_of, relative, files))
    return log_sum_exp


def name_score(query: RankingQuery, path: str, weights: Weights) -> float:
    """The bonus for the file name: agreement, and equality with an identifier of the query."""
    name = _path_facts(path).name
    is_named = name in query.stems_of_names
    return weights.file_name * query.agreement(name) + weights.file_of_name * is_named


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
        self._weights = weights
        self._passages = passages
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
        for kind in facts.kinds & self._kinds:
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
