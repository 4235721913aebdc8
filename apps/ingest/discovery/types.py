"""Value types of the parts of a discovery."""

import os
from typing import NamedTuple

NOT_CHECKED_OUT = "Not checked out"


class ListedFile(NamedTuple):
    """A file, or a folder that is not entered."""

    path: str  # relative to the root; that of a folder ends with a slash
    reason: str = ""  # why it is skipped; "" if that is not decided yet
    unreadable: bool = False  # as in `Skipped`
    chosen: bool = False  # a `.codeinfoignore` includes it
    # As of `RootDirectory.stat`; None if it is not known yet.
    status: os.stat_result | None = None
