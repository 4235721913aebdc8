"""The product's own words and ranking, over texts that are in no repository.

The word index and the ranking are the product's; only what lies between them is here: which
passages are told to the ranking, as `apps.retrieval.gather.gather` chooses them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from apps.embedding.types import EmbeddingText
from apps.index.lexical import words
from apps.index.lexical.store import LexicalStore
from apps.index.types import VectorRecord
from apps.retrieval.ranking import Passage, Passages, RankingQuery, rank
from apps.retrieval.ranking.rank import drop_stopwords, query_stems

Scores = NDArray[np.floating]
WIDTH = 200  # of each side


class Words:
    """The word index of some texts, kept in a folder."""

    def __init__(self, texts: Sequence[EmbeddingText], folder: Path) -> None:
        self.texts = texts
        self._root = uuid4()
        self._store = LexicalStore(folder)
        self._store.add(self._root, [_record(*each) for each in enumerate(texts)])

    def scores(self, question: str) -> Scores:
        """BM25 over the fields, 0 for a text that has none of the words."""
        scores = np.zeros(len(self.texts))
        for hit in self._store.search(self._root, drop_stopwords(words(question)), len(self.texts)):
            scores[int(hit.id)] = hit.score
        return scores

    def question(self, text: str) -> RankingQuery:
        return RankingQuery.of(text, *self._store.frequencies(self._root, query_stems(text)))


def ranked(found: Words, near: Callable[[str], Scores]) -> Callable[[str], Scores]:
    """The whole of a search: `near` gives the cosines of all texts. The scores tell the order; a
    text that is not in the answer has none."""

    def search(text: str) -> Scores:
        similar, spelt = near(text), found.scores(text)
        some = np.union1d(_best(similar), _best(spelt)[spelt[_best(spelt)] > 0])
        passages = [
            Passage("", found.texts[i].path, (_name(found.texts[i]),), similar[i], spelt[i])
            for i in some
        ]
        order = some[rank(found.question(text), Passages.of(passages))]
        scores = np.full(len(similar), -np.inf)
        scores[order] = -np.arange(len(order))
        return scores

    return search


def _best(scores: Scores) -> NDArray[np.intp]:
    return np.argsort(-scores, kind="stable")[:WIDTH]


def _name(text: EmbeddingText) -> str:
    return text.symbol.rpartition(".")[2]


def _record(number: int, text: EmbeddingText) -> VectorRecord:
    facts: dict[str, str | int | float | bool] = {
        "sourceFile": text.path,
        "relPath": text.path,
        "chunkIndex": number,
        "symbol": text.symbol,
        "names": _name(text),
        "signature": text.signature,
    }
    return VectorRecord(str(number), text.body, facts)
