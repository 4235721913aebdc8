"""Compares all files of the index with their checksums: a scrub, as in ZFS.

It is due after a start, once a day, and when something could not be read. What differs counts as
missing from then on: so answers and `/health` tell of it, and `integrity` has it ingested again.

- A part is marked in the lists of its roots.
- The text store forgets the texts of a block.
- A file of n-grams is deleted, and made again by the next sweep.
- What SQLite finds wrong with the database is told until the next scrub.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from apps.core.data import damage
from apps.index import changes, freeze, scrubbed
from apps.index.grams import get_grams
from apps.index.mapped import files, lists, part
from apps.index.scrubbed import Scrubbed
from apps.index.texts import get_texts
from apps.index.types import Check
from apps.ingest.runs import integrity
from apps.ingest.runs.job import stop_for_runs

logger = logging.getLogger("codeinfo.ingest")

# How often the progress is saved.
SAVE_SECONDS = 1.0


class _File(NamedTuple):
    path: Path
    size: int
    # Returns whether it is as it was written. Calls `check` often, which may raise.
    compare: Callable[[Check], bool]


class Scrub:
    """One scrub after another. One that was interrupted continues where it was."""

    def __init__(self) -> None:
        self._done: dict[Path, int] = {}  # path → bytes
        self._damaged = 0
        self._saved_at = 0.0

    def run(self, check: Check) -> None:
        """Compare all files. `check` is called before each small piece. Raises as `check`,
        RunCancelled if a run is waiting, Unavailable, DatabaseError and OSError."""
        if not self._done and scrubbed.read().database:
            scrubbed.found_in_database(damage.examine(check))  # it may have been restored
        found = list(_files())
        total = sum(file.size for file in found)
        for file in found:
            if file.path in self._done:
                continue
            self._save(total)
            stop_for_runs()
            if not file.compare(check):
                self._damaged += 1
                facts = {"file": f"{file.path.parent.name}/{file.path.name}"}
                logger.warning("a file differs from its checksums", extra={"context": facts})
                changes.check_due.set()
            self._done[file.path] = file.size
        counts = {"files": len(self._done), "bytes": total, "damaged": self._damaged}
        logger.info("index compared with its checksums", extra={"context": counts})
        now = time.time()  # what a reader meets from now on is new
        scrubbed.save(Scrubbed(now, database=damage.examine(check)))
        self._done, self._damaged = {}, 0
        changes.check_due.set()  # what was damaged may be back, too

    def _save(self, total: int) -> None:
        now = time.monotonic()
        if now >= self._saved_at + SAVE_SECONDS:
            self._saved_at = now
            done = sum(self._done.values())
            scrubbed.save(replace(scrubbed.read(), done=done, total=total))


def _files() -> Iterator[_File]:
    """The files of the index. One that is gone is not compared: `integrity` misses it."""
    texts, grams = get_texts(), get_grams()
    compared: Mapping[Path, Callable[[Check], bool]] = {
        **{part.path_of(lists.folder(), name): partial(_compare_part, name) for name in _listed()},
        **{texts.segments.path(n): partial(_compare_texts, n) for n in texts.segments.names()},
        **{path: partial(_compare_grams, path) for path in grams.paths()},
    }
    for path, compare in compared.items():
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            continue
        yield _File(path, size, compare)


def _listed() -> dict[str, None]:
    """The names of all parts of roots that are searched and that no run changes now."""
    roots = integrity.roots_to_check()
    return dict.fromkeys(entry["name"] for root in roots for entry in root.parts)


def _compare_part(name: str, check: Check) -> bool:
    try:
        files.verify(part.path_of(lists.folder(), name), check)
    except FileNotFoundError:
        return True  # merged meanwhile, or `integrity` misses it
    except files.Damaged:
        _mark(name, is_damaged=True)
        return False
    _mark(name, is_damaged=False)
    return True


@freeze.changing()
def _mark(name: str, *, is_damaged: bool) -> None:
    for root in integrity.roots_to_check():
        lists.mark(root, name, is_damaged=is_damaged)


@freeze.changing()
def _compare_texts(segment: int, check: Check) -> bool:
    return get_texts().compare(segment, check)


def _compare_grams(path: Path, check: Check) -> bool:
    check()
    if get_grams().remove_damaged(path):
        changes.sweep_due.set()
        return False
    return True
