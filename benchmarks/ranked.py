"""The word index and the ranking of codeinfo, over texts that are not in a repository.

Candidates are chosen as in `apps.retrieval.gather.gather`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Chunk
from apps.embedding.types import EmbeddingText
from apps.index.lexical import words
from apps.index.lexical.store import LexicalStore
from apps.index.types import ChunkRecord
from apps.retrieval.ranking import Passage, Passages, RankingQuery, rank
from apps.retrieval.ranking.rank import drop_stopwords, query_stems

Scores = NDArray[np.floating]
WIDTH = 200  # candidates by vector, and by words


class Words:
    """The word index of texts, in a folder."""

    def __init__(self, texts: Sequence[EmbeddingText], folder: Path) -> None:
        self.texts = texts
        self._root = uuid4()
        self._store = LexicalStore(folder)
        self._store.add(self._root, [_record(*each) for each in enumerate(texts)])

    def scores(self, question: str) -> Scores:
        """The BM25 score of each text over its fields; 0 without any word of the question."""
        scores = np.zeros(len(self.texts))
        for hit in self._store.search(self._root, drop_stopwords(words(question)), len(self.texts)):
            scores[int(hit.id.rpartition(":")[2])] = hit.score
        return scores

    def question(self, text: str) -> RankingQuery:
        return RankingQuery.of(text, *self._store.frequencies(self._root, query_stems(text)))


def ranked(found: Words, near: Callable[[str], Scores]) -> Callable[[str], Scores]:
    """A complete search. `near` returns the cosines of all texts. The scores are negated ranks;
    -inf for texts that are not in the result."""

    def search(text: str) -> Scores:
        similarity, lexical = near(text), found.scores(text)
        chosen = np.union1d(_best(similarity), _best(lexical)[lexical[_best(lexical)] > 0])
        passages = [
            Passage("", found.texts[i].path, (_name(found.texts[i]),), similarity[i], lexical[i])
            for i in chosen
        ]
        order = chosen[rank(found.question(text), Passages.of(passages))]
        scores = np.full(len(similarity), -np.inf)
        scores[order] = -np.arange(len(order))
        return scores

    return search


def _best(scores: Scores) -> NDArray[np.intp]:
    return np.argsort(-scores, kind="stable")[:WIDTH]


def _name(text: EmbeddingText) -> str:
    return text.symbol.rpartition(".")[2]


def _record(number: int, text: EmbeddingText) -> ChunkRecord:
    return ChunkRecord(
        id=f"{text.path}:{number}",
        source_file=text.path,
        run_id="",
        path=text.path,
        language="",
        sha256="",
        index=number,
        chunk=Chunk(text.body, 0, 0, text.symbol, (_name(text),), text.signature),
    )
