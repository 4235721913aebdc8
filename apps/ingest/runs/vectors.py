"""The vectors of the chunks of a run. A chunk without one has a row of zeros."""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from apps.core.errors import Unavailable
from apps.embedding.types import Embedder, EmbeddingText, Vectors
from apps.index.units import unit_rows

logger = logging.getLogger("codeinfo.ingest")

# Tells the dimension of the model if no chunk of a batch is embedded.
ANY_TEXT = EmbeddingText("codeinfo")


class VectorMaker:
    """Embeds the chunks of a run."""

    def __init__(self, embedder: Embedder, *, may_fail: bool) -> None:
        """may_fail: whether the run may end without any vector"""
        self._embedder = embedder
        self._may_fail = may_fail
        self._wanted = self._made = 0

    def vectors(
        self,
        texts: Sequence[EmbeddingText | None],
        kept: Mapping[EmbeddingText, Vectors] = MappingProxyType({}),
    ) -> Vectors:
        """The vectors of texts, float32 (len(texts), dimension); (0, 0) without texts.

        Those of unit length or zeros, where the text is None or its vector is not usable: zero or
        not finite. Raises as Embedder.

        kept: vectors of texts that are not embedded again, if they have the length of the others
        """
        if not texts:
            return np.zeros((0, 0), np.float32)
        has = {place: kept[text] for place, text in enumerate(texts) if text and text in kept}
        wanted = [place for place, text in enumerate(texts) if text and place not in has]
        length = len(next(iter(has.values()), ()))
        if has and not wanted:
            made = np.zeros((0, length), np.float32)
        else:
            some = [text for place in wanted if (text := texts[place])]
            made = self._embedder.embed_documents(some or [ANY_TEXT])
        if has and made.shape[1] != length:
            return self.vectors(texts)
        units, good = unit_rows(made)
        vectors = np.zeros((len(texts), made.shape[1]), np.float32)
        if wanted:
            vectors[wanted] = np.where(good[:, None], units, 0)
            self._count(len(wanted), int(good.sum()))
        for place, vector in has.items():
            vectors[place] = vector
        self._made += len(has)
        return vectors

    def _count(self, wanted: int, made: int) -> None:
        self._wanted += wanted
        self._made += made
        if made < wanted:
            facts = {"count": wanted - made}
            logger.warning("chunks without a usable vector", extra={"context": facts})

    def check(self, shared: int) -> None:
        """Raise Unavailable if no vector of all that were to be made is usable.

        shared: the number of vectors that the run has from elsewhere
        """
        if self._wanted and not (self._made or shared or self._may_fail):
            text = f"{self._embedder.id} gave no usable vector"
            raise Unavailable(text, code="EMBEDDER_UNAVAILABLE")

    def cut_message(self) -> str:
        """Return how many texts the embedder had to cut, for the run; "" if none."""
        if not (count := self._embedder.cut_texts):
            return ""
        facts = {"model": self._embedder.id, "count": count}
        logger.warning("texts cut for the embedding server", extra={"context": facts})
        texts = "1 text was" if count == 1 else f"{count:,} texts were"
        return f"Completed; {texts} cut to the context of the embedding server"
