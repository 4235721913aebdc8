"""Scores and order of passages: pure functions over numpy columns.

query + passages -> mix of similarity and BM25, standardised -> names that a passage declares
                 -> passages pooled by file -> file name and penalties -> order
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
from apps.retrieval.ranking.weights import Weights

STOPWORDS = frozenset(
    stems(
        "a an the of for in on to and or how is are does do did with from by at what where which "
        "that this it its as be when into through via using not if can why who whose than then "
        "there here was were has have had should would could will between each other"
    )
)
# An identifier with its qualifiers: `Session`, `Sinatra::Base`, `z.pipe`, `list->map`.
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:::|->|[.#])[A-Za-z_$][\w$]*)*")
_QUALIFIER = re.compile(r"::|->|[.#]")
# Forms that no word of a sentence has: camelCase, snake_case, qualified, HTTPError.
_IDENTIFIER = re.compile(r"[a-z0-9][A-Z]|_|::|->|[.#]\w\w|^[A-Z]{2,}[a-z]")
# Score of a declared name that the query spells exactly, in another case, or joined differently.
EXACT, OTHER_CASE, SAME_PARTS = 1.0, 0.8, 0.6
# The limit per file of `results`; a third passage would take the place of another file.
MAX_PER_FILE = 2


@lru_cache(maxsize=50_000)
def stems_of(name: str) -> frozenset[str]:
    """The stems of a declared name or of a path component."""
    return frozenset(stems(name))


# Stems by which a query asks for files of a kind. Such a query lifts the penalty of that kind.
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
    """The distinct words or stems that are no stopwords; all of them if there is nothing else."""
    distinct = tuple(dict.fromkeys(words))
    return tuple(word for word in distinct if word not in STOPWORDS) or distinct


@dataclass(frozen=True)
class RankingQuery:
    """The query as the ranking reads it."""

    text: str
    stems: frozenset[str]  # without stopwords
    idf: Mapping[str, float]  # by stem
    max_idf: float  # of a stem that no passage has
    weight: float  # sum of `idf`
    names: frozenset[str]  # identifiers in the text, without qualifiers
    is_name: bool  # the text is one identifier

    @classmethod
    def of(
        cls, text: str, frequencies: Mapping[str, int] | None = None, total: int = 0
    ) -> "RankingQuery":
        """`frequencies` are document frequencies by stem in `total` passages. Without them every
        stem weighs 1."""
        known = frequencies or {}
        idf = {stem: _idf(min(known.get(stem, 0), total), total) for stem in query_stems(text)}
        names = frozenset(_names(text))
        return cls(
            text=text,
            stems=frozenset(idf),
            idf=idf,
            max_idf=_idf(0, total),
            weight=sum(idf.values()),
            names=names,
            is_name=bool(names) and len(text.split()) == 1,
        )

    def agreement(self, parts: frozenset[str]) -> float:
        """How well the stems of a name agree with the query, 0 to 1.

        The harmonic mean (F1) of two shares: of the name's stems in the query, and of the query's
        stems in the name, each stem weighted by its idf.
        """
        if self.stems.isdisjoint(parts):
            return 0.0
        shared = parts & self.stems
        both = sum([self.idf[part] for part in shared])
        of_name = both + self.max_idf * (len(parts) - len(shared))
        return 2 * both / (of_name + self.weight)

    @cached_property
    def stems_of_names(self) -> frozenset[frozenset[str]]:
        """The stems of each identifier in the query."""
        return frozenset(map(stems_of, self.names))

    def has_any(self, stems: frozenset[str]) -> bool:
        return not stems.isdisjoint(self.stems)


def _names(text: str) -> list[str]:
    """The identifiers in a query, without qualifiers. A single word counts as one."""
    names = _NAME.findall(text)
    alone = len(text.split()) == 1
    return [_QUALIFIER.split(name)[-1] for name in names if alone or _IDENTIFIER.search(name)]


def _idf(count: int, total: int) -> float:
    """BM25's idf (Robertson and Zaragoza 2009) with 1 added inside the logarithm."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5)) if total else 1.0


# --- the order ------------------------------------------------------------------------------------


def rank(query: RankingQuery, passages: Passages, weights: Weights | None = None) -> list[int]:
    """Indexes of passages, best first, at most MAX_PER_FILE of a file; ties keep their order."""
    weights = weights or Weights()
    scores = passage_scores(query, passages, weights)
    of_files = file_scores(query, passages, scores, weights)
    best, places = best_of_files(passages.file_of, scores)
    placed = of_files[passages.file_of[best]] - weights.repeat_penalty * places
    order: list[int] = best[np.lexsort((best, -placed))].tolist()
    return order


def best_of_files(
    file_of: NDArray[np.intp], scores: Scores
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indexes of the best passages of each file, and the place of each in its file, from 0."""
    by_file = np.lexsort((-scores, file_of))
    files = file_of[by_file]
    places = np.arange(len(files)) - np.searchsorted(files, files)
    best = places < MAX_PER_FILE
    return by_file[best], places[best]


# --- passages -------------------------------------------------------------------------------------


def passage_scores(query: RankingQuery, passages: Passages, weights: Weights) -> Scores:
    """Mixed scores in standard deviations, raised if a passage declares what the query names."""
    share = weights.semantic_weight_of_name if query.is_name else weights.semantic_weight
    similarity = 1 - passages.distances / 2  # the cosine
    scores = mix(similarity, passages.words, share)
    matcher = _NameMatcher(query)
    for index, names in enumerate(passages.names):
        facts = _name_facts(names)
        # Most passages declare no name of the query; this check is cheap.
        if not matcher.words.isdisjoint(facts.words):
            agreement = max(map(query.agreement, facts.stems))
            scores[index] += weights.definition * matcher.score(names) + weights.names * agreement
    return scores


def mix(similarity: ArrayLike, words: ArrayLike, share: float) -> Scores:
    """`share` of the standardised similarity plus the rest of the standardised BM25 score.

    Scores are mixed rather than ranks: they also say by how much the best is better. If one of the
    two is nan the other counts alone.
    """
    by_similarity, by_words = standardised(similarity), standardised(words)
    mixed = share * by_similarity + (1 - share) * by_words
    mixed = np.where(np.isnan(by_words), by_similarity, mixed)
    scores: Scores = np.nan_to_num(np.where(np.isnan(by_similarity), by_words, mixed))
    return scores


def standardised(values: ArrayLike) -> Scores:
    """z-scores: distances from the mean in standard deviations; nan stays nan."""
    column = np.asarray(values, np.float64)
    known = column[~np.isnan(column)]
    if not known.size:
        return column
    # The constant avoids a division by 0 if all values are equal.
    scores: Scores = (column - known.mean()) / (known.std() + 1e-9)
    return scores


class _NameMatcher:
    """Compares declared names with the identifiers of a query."""

    def __init__(self, query: RankingQuery) -> None:
        self._query = query
        self._lower = {name.lower() for name in query.names}
        # A passage whose names share none of these words cannot match.
        self.words = query.stems.union(self._lower, *query.stems_of_names)

    def score(self, names: tuple[str, ...]) -> float:
        """The score of the best of some declared names."""
        return max(map(self._score, names)) if self._lower else 0.0

    def _score(self, name: str) -> float:
        if name in self._query.names:
            return EXACT
        if name.lower() in self._lower:
            return OTHER_CASE
        return SAME_PARTS if stems_of(name) in self._query.stems_of_names else 0.0


class NameFacts(NamedTuple):
    """The declared names of one passage."""

    stems: tuple[frozenset[str], ...]  # of each name
    words: frozenset[str]  # all stems, and the names in lower case


@lru_cache(maxsize=20_000)
def _name_facts(names: tuple[str, ...]) -> NameFacts:
    each = tuple(map(stems_of, names))
    return NameFacts(each, frozenset(map(str.lower, names)).union(*each))


# --- files ----------------------------------------------------------------------------------------


def file_scores(
    query: RankingQuery, passages: Passages, scores: Scores, weights: Weights
) -> Scores:
    """One score for each file, comparable between files; `scores` are those of the passages."""
    penalties = _Penalties(query, passages, weights)
    of_paths = [
        name_score(query, path, weights) - penalties.of(file)
        for file, (_, path) in enumerate(passages.files)
    ]
    by_passages = pooled(scores, passages.file_of, len(of_paths), weights.pool)
    return by_passages + np.array(of_paths, np.float64)


def pooled(scores: Scores, file_of: NDArray[np.intp], files: int, temperature: float) -> Scores:
    """The log-sum-exp of each file's passage scores, at a temperature.

    A file that matches in several places is about the subject; a file that matches once may only
    mention it. Passages far below the best add nothing, so long files have no advantage.
    """
    best = np.full(files, -np.inf)
    np.maximum.at(best, file_of, scores)
    if temperature <= 0:
        return best
    near = np.exp((scores - best[file_of]) / temperature)
    raised: Scores = best + temperature * np.log(np.bincount(file_of, near, files))
    return raised


def name_score(query: RankingQuery, path: str, weights: Weights) -> float:
    """What the file's name adds: by agreement, and by equality with an identifier of the query."""
    parts = _path_facts(path).name
    is_named = parts in query.stems_of_names
    return weights.file_name * query.agreement(parts) + weights.file_of_name * is_named


class PathFacts(NamedTuple):
    """What a path says about its file."""

    kinds: frozenset[str]
    name: frozenset[str]  # stems of the descriptive name
    is_index: bool


@lru_cache(maxsize=20_000)
def _path_facts(path: str) -> PathFacts:
    name = stems_of(paths.descriptive_name(path))
    return PathFacts(paths.kinds(path), name, paths.is_index(path))


class _Penalties:
    """Penalties of files for their kind and for the files beside them."""

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
