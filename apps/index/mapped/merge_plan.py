"""Which parts of a root are merged: by size classes, as in an LSM tree.

A class has the parts of FAN_IN**k to FAN_IN**(k + 1) rows. FAN_IN parts of a class become one of a
higher class, so a row is written again about once in each of the eight classes. At most 24 parts
stay beside the full ones. With eight to a merge they would be 42, for five classes.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from apps.index.mapped.live_files import LiveFiles
from apps.index.mapped.part import PART_ROWS

FAN_IN = 4
# A part with so many rows is full. It may have less than PART_ROWS, so that no document is cut.
FULL_ROWS = PART_ROWS - PART_ROWS // 32


class PartSize(NamedTuple):
    """The size of a part. A file without chunks counts as a row: it may have definitions."""

    rows: int
    live: int  # of these
    is_earlier: bool = False  # as Part.is_earlier

    @classmethod
    def of(cls, each: LiveFiles) -> "PartSize":
        is_without = np.ones(len(each.live), np.bool_)
        is_without[each.part.file_of] = False
        others = int(np.count_nonzero(is_without & each.live))
        rows = len(each.part) + int(np.count_nonzero(is_without))
        return cls(rows, each.rows + others, each.part.is_earlier)

    @property
    def is_worn(self) -> bool:
        """Whether more than a third is dead: searches scan dead rows, too."""
        return not self.live or 3 * (self.rows - self.live) > self.rows

    @property
    def size_class(self) -> int:
        """The logarithm of the live rows to the base FAN_IN."""
        return (self.live.bit_length() - 1) // (FAN_IN.bit_length() - 1)


def plan(parts: Sequence[PartSize]) -> list[list[int]]:
    """Which parts are merged with each other now, by index. The result of a merge takes the place
    of its parts. It may be merged in turn: all is done when this returns nothing."""
    classes: dict[int, list[int]] = defaultdict(list)
    for number, part in enumerate(parts):
        if not part.is_earlier and (part.is_worn or part.rows < FULL_ROWS):
            classes[part.size_class].append(number)
    groups = []
    for _, members in sorted(classes.items()):
        if len(members) >= FAN_IN:
            groups.append(members)
        else:
            groups += [[number] for number in members if parts[number].is_worn]
    return groups
