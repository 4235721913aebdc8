"""A part with the files of it that a generation has."""

from collections.abc import Iterator
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

    @property
    def documents(self) -> Iterator[str]:
        files = self.part.files
        return (files[place].source_file for place in np.flatnonzero(self.live).tolist())
