"""The words and the ranking of codeinfo, over texts that are not in a repository.

Candidates are chosen as in `apps.retrieval.gather.gather`. Import it after `product.set_up`.
"""

from collections.abc import Callable, Sequence
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from apps.code.values import Chunk
from apps.core.values.slices import slices
from apps.embedding.types import EmbeddingText
from apps.index.chunk_ids import chunk_id
from apps.index.lexical import words
from apps.index.mapped.best import best
from apps.index.mapped.codes import Codes
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import PART_ROWS, Part
from apps.index.mapped.part_builder import PartBuilder, ReadFile
from apps.index.mapped.root import MappedRoot
from apps.index.models import Root, SourceFile
from apps.index.types import ChunkRecord
from apps.retrieval.ranking import Passage, Passages, RankingQuery, rank
from apps.retrieval.ranking.rank import drop_stopwords, query_stems

Scores = NDArray[np.floating]
WIDTH = 200  # candidates by vector, and by words


class Words:
    """The words of texts, in parts."""

    def __init__(self, texts: Sequence[EmbeddingText]) -> None:
        self.texts = texts
        parts = [_part(part) for part in slices(texts, PART_ROWS)]
        pieces = [LiveFiles(part, np.ones(len(part), np.bool_)) for part in parts]
        self._root = MappedRoot.of(Root(generation=1), pieces)

    def scores(self, question: str) -> Scores:
        """The BM25 score of each text over its fields; 0 without any word of the question."""
        scores = np.zeros(len(self.texts))
        hits = self._root.hits(self._root.find(drop_stopwords(words(question))))
        rows, found, _ = best(hits, [None] * len(hits), len(self.texts))
        scores[rows] = found
        return scores

    def question(self, text: str) -> RankingQuery:
        return RankingQuery.of(text, self._root.counts(query_stems(text)), self._root.chunks)


def ranked(found: Words, near: Callable[[str], Scores]) -> Callable[[str], Scores]:
    """A complete search. `near` returns the cosines of all texts. The scores are negated ranks;
    -inf for texts that are not in the result."""

    def search(text: str) -> Scores:
        similarity, lexical = near(text), found.scores(text)
        chosen = np.union1d(_best(similarity), _best(lexical)[lexical[_best(lexical)] > 0])
        passages = [
            Passage("", found.texts[i].path, _name(found.texts[i]), similarity[i], lexical[i])
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


def _part(texts: Sequence[EmbeddingText]) -> Part:
    builder = PartBuilder()
    # Searched by words alone, so any vectors will do.
    builder.add([_file(text) for text in texts], Codes.of(np.ones((len(texts), 1), np.float32)))
    return builder.part(uuid4())


def _file(text: EmbeddingText) -> ReadFile:
    row = SourceFile(path=text.path, run_id=uuid4(), sha256="00" * 32)
    chunk = Chunk(text.body, 0, 0, text.symbol, (_name(text),), text.signature)
    document = str(row.document)
    record = ChunkRecord(
        chunk_id(document, 0), document, str(row.run_id), row.path, "", row.sha256, 0, chunk
    )
    return ReadFile(row, (), [record])
