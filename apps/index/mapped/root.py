"""The live chunks of one generation of a root, mapped from files."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.index.lexical import scoring
from apps.index.mapped.best import PartHits
from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import LivePart
from apps.index.mapped.words import Hashes, hashes_of
from apps.index.models import Root

_NONE = slice(0, 0)


@dataclass(frozen=True)
class MappedRoot:
    """The chunks of the parts of a generation, n of them, with those that are not live."""

    generation: int
    revision: int  # of the list of parts
    parts: Sequence[LivePart]
    chunks: int  # live chunks that have a word
    live: int  # live chunks
    lost: Sequence[str] = ()  # why a part is missing, one for each

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def version(self) -> tuple[int, int]:
        """What publishing and merging raise."""
        return self.generation, self.revision

    @property
    def is_lost(self) -> bool:
        """Whether a part cannot be read any more as it was."""
        return any(live_part.part.is_lost for live_part in self.parts)

    def is_of(self, root: Root) -> bool:
        """Whether these are the parts that `root` lists."""
        return self.version == (root.generation, root.revision)

    @classmethod
    def of(cls, root: Root, parts: Sequence[LiveFiles], lost: Sequence[str] = ()) -> "MappedRoot":
        """The generation of a root that has these files of each part."""
        masks = [one.live[one.part.file_of] for one in parts]
        lengths = [one.part.columns.lengths * mask for one, mask in zip(parts, masks, strict=True)]
        norms, chunks = scoring.norms(np.concatenate([np.zeros(0, np.uint32), *lengths]))
        ends = np.cumsum([len(mask) for mask in masks])[:-1]
        live_parts = [
            LivePart(one.part, None if mask.all() else mask, of_part, one.live)
            for one, mask, of_part in zip(parts, masks, np.split(norms, ends), strict=False)
        ]
        live = sum(int(mask.sum()) for mask in masks)
        return cls(root.generation, root.revision, live_parts, chunks, live, lost)

    def find(self, words: Sequence[str], hashes: Hashes | None = None) -> "list[WordHits]":
        """The hits of each word. hashes: `hashes_of(words)`, if they are known"""
        hashes = hashes_of(words) if hashes is None else hashes
        of_parts = [part.part.words.find(hashes) for part in self.parts]
        return [WordHits.of(self.parts, slices) for slices in zip(*of_parts, strict=True)] or [
            WordHits((), 0) for _ in words
        ]

    def hits(self, hits: "Sequence[WordHits]") -> list[PartHits]:
        """The hits of some distinct words (`find`) in each part, without those of stop words."""
        used = scoring.drop_stopwords([hit for hit in hits if hit], self.chunks)
        of_words = [hit if any(hit is it for it in used) else None for hit in hits]
        counts = np.array([word.count if word else 0 for word in of_words], np.float64)
        idf = scoring.idf(counts, self.chunks)
        return [
            PartHits(part, [word.slices[place] if word else _NONE for word in of_words], idf)
            for place, part in enumerate(self.parts)
        ]

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        """The document frequency of each word that any live chunk contains."""
        pairs = zip(words, self.find(words), strict=True)
        return {word: hits.count for word, hits in pairs if hits}


@dataclass(frozen=True)
class WordHits:
    """The hits of a word. Its length is its document frequency."""

    slices: Sequence[slice]  # in each part
    count: int  # of those in live chunks

    def __len__(self) -> int:
        return self.count

    @classmethod
    def of(cls, parts: Sequence[LivePart], slices: Sequence[slice]) -> "WordHits":
        pairs = zip(parts, slices, strict=True)
        return cls(slices, sum(_live_hits(part, within) for part, within in pairs))


def _live_hits(part: LivePart, hits: slice) -> int:
    if part.live is None:
        return int(hits.stop - hits.start)
    return int(np.count_nonzero(part.live[part.part.words.rows[hits]]))
