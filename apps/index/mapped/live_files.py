"""A part with the files of it that a generation has."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from apps.index.mapped.part import Mask, Part


@dataclass(frozen=True)
class LiveFiles:
    """A part with the files of it that are live: bool (files,)."""

    part: Part
    live: Mask

    @property
    def rows(self) -> int:
        return int(np.count_nonzero(self.live[self.part.file_of]))

    def without(self, documents: Collection[str]) -> "LiveFiles":
        """The same part, in which the files of some documents are not live."""
        if not (places := self.part.places_of(documents)):
            return self
        live = self.live.copy()
        live[places] = False
        return LiveFiles(self.part, live)

    @property
    def documents(self) -> Iterator[str]:
        files = self.part.files
        return (files[place].source_file for place in np.flatnonzero(self.live).tolist())
