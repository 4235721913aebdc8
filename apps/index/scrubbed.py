"""The last scrub, and how far the one in progress is: a file, which the server and `doctor` read.

A scrub compares all files of the index with their checksums. The worker writes this file; `doctor`
does so if it finds another state of the database.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from apps.core.config import config

DAY_SECONDS = 24 * 3600.0


@dataclass(frozen=True)
class Scrubbed:
    """finished_at: when the last scrub was complete, seconds since the epoch; 0 for never
    done, total: bytes of the one in progress; total is 0 if none is
    database: what it found wrong with the database, or "" """

    finished_at: float = 0.0
    done: int = 0
    total: int = 0
    database: str = ""

    @property
    def text(self) -> str:
        """A sentence for a person."""
        if self.total:
            percent = 100 * self.done // self.total
            return f"The index is being compared with its checksums: {percent} %"
        if not self.finished_at:
            return "The index was not compared with its checksums yet"
        when = datetime.fromtimestamp(self.finished_at, UTC)
        return f"The index was compared with its checksums at {when:%Y-%m-%d %H:%M} UTC"


def read() -> Scrubbed:
    """Return what was saved; if that cannot be read, as if there was no scrub."""
    with suppress(OSError, ValueError, TypeError):
        return Scrubbed(**json.loads(_path().read_bytes()))
    return Scrubbed()


def save(state: Scrubbed) -> None:
    """Replace the file. On a full disk the old one stays: the scrub itself needs none."""
    unfinished = _path().with_suffix(".new")
    with suppress(OSError):
        unfinished.write_text(json.dumps(asdict(state)))
        unfinished.replace(_path())


def found_in_database(wrong: str) -> None:
    """Replace what is wrong with the database; "" if nothing is."""
    if wrong != (last := read()).database:
        save(replace(last, database=wrong))


def _path() -> Path:
    return config().data_dir / "scrub.json"
