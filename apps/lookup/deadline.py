"""The end of the time in which files are read for an answer."""

import time
from collections.abc import Iterable
from uuid import UUID

from apps.index.models import Root

NOT_READ = "Files that were not looked at in time: {}. Ask again, or narrow the question."


class Deadline:
    """When reading files ends for all parts of one answer, and what they have not read by then.

    Who makes it tells its `note`: a look-up that is given one leaves that out.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self.unread: set[tuple[UUID, str]] = set()  # root, path

    @property
    def left(self) -> float:
        """Seconds, at least 0."""
        return max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        return not self.left

    @property
    def note(self) -> str:
        return NOT_READ.format(len(self.unread)) if self.unread else ""

    def leave_out(self, root: Root, paths: Iterable[str]) -> None:
        """Count files as not read."""
        self.unread.update((root.id, path) for path in paths)
