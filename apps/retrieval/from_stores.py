"""Candidates of a root that the stores have to be asked for."""

import logging
from collections.abc import Sequence

import numpy as np

from apps.core.errors import Unavailable
from apps.index.lexical import ChunkFacts, get_lexical
from apps.index.models import Root
from apps.index.queries import live_file_ids
from apps.index.vectors.store import get_store
from apps.retrieval.asked import Asked
from apps.retrieval.columns import Candidates, Frequencies, Side
from apps.retrieval.rows import facts_of

log = logging.getLogger("codeinfo.retrieval")


class FromStores:
    """Its keys are ids. What is near is asked of the vector store for all such roots together
    (`gather`)."""

    def __init__(self, root: Root, asked: Asked) -> None:
        self.root = root
        self._asked = asked

    def hits(self, n: int) -> Side | None:
        asked = self._asked
        try:
            found = get_lexical().search(self.root.id, asked.words, n, asked.filters)
        except Unavailable as error:
            if asked.vector is None:
                raise
            log.warning("no word index", extra={"context": {"reason": error.message}})
            return None
        return side_of([(hit.id, -hit.score) for hit in found], n)

    def best(self, side: Side, n: int, limit: float) -> Side:
        return side.best(limit).at(slice(n))

    def candidates(self, near: Side, hits: Side | None) -> Candidates:
        distances = dict(zip(near.keys, near.values.tolist(), strict=True))
        scores = dict(zip(hits.keys, (-hits.values).tolist(), strict=True)) if hits else {}
        ids = list(dict.fromkeys((*distances, *scores)))
        facts = {} if hits is None else get_lexical().facts(self.root.id, ids)
        wordless = not facts
        facts |= self._stored([i for i in near.keys if i not in facts])
        ids = [i for i in ids if i in facts and self._counts(facts[i])]
        files: dict[str, int] = {}
        return Candidates(
            roots=[self.root] * len(ids),
            ids=ids,
            file_of=np.array([files.setdefault(facts[i].path, len(files)) for i in ids], np.intp),
            files=[(self.root.path, path) for path in files],
            names=[facts[i].names for i in ids],
            distances=np.array([distances.get(i, np.nan) for i in ids]),
            words=np.array([np.nan if wordless else scores.get(i, 0.0) for i in ids]),
            near=np.array([i in distances for i in ids], np.bool_),
        )

    def frequencies(self) -> Frequencies:
        try:
            return get_lexical().frequencies(self.root.id, self._asked.stems)
        except Unavailable:
            return {}, 0  # then its candidates have no words either, and `hits` has said so

    def _stored(self, ids: Sequence[str]) -> dict[str, ChunkFacts]:
        """What the vector store knows of chunks that the word index does not have (yet)."""
        matches = get_store().get(self.root.id, ids) if ids else {}
        return {match.id: facts_of(match) for match in matches.values()}

    def _counts(self, facts: ChunkFacts) -> bool:
        """Whether it is of a live file that counts here."""
        return facts.source_file in live_file_ids(self.root) and self._asked.fits(
            self.root, facts.path, facts.language
        )


def side_of(found: Sequence[tuple[str, float]], n: int) -> Side:
    """A side of a store's answer, when it was asked for n ids and their values."""
    ids, values = zip(*found, strict=True) if found else ((), ())
    return Side(np.array(ids, object), np.array(values, float), more=len(found) >= n)
