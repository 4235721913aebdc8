"""The files of a repository on the disk as they are now, for the check of citations."""

import errno
import stat
import time
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from apps.code.chunking import decode, lines_of
from apps.core.errors import CodeinfoError
from apps.core.values.times import seconds_of
from apps.index import queries
from apps.index.models import Root, SourceFile
from apps.index.root_directory import RootDirectory, digest_at, read_content
from apps.index.types import Area
from apps.ingest.discovery.discovery import discover
from apps.ingest.types import Candidate, FileStat
from apps.lookup.citations.baseline import Baseline, Cited, Unknowable, commit_has
from apps.lookup.citations.verdict import is_telling
from apps.retrieval.query import is_inside

# Files that are read to find the one that a file has become, and seconds for them.
MAX_READ, SECONDS = 200, 2.0


class Folder:
    """The folder of a repository. areas: files must be in one of them, if there are some."""

    def __init__(self, root: Root, areas: Sequence[Area]) -> None:
        self.root, self.path, self._areas = root, Path(root.path), areas

    def row(self, path: str) -> SourceFile | None:
        """The live row of a file. Raises Unknowable for one that is left out of the ingest."""
        row = queries.live_files(self.root).filter(path=path).first()
        if row is not None and row.skip_reason and self.has(path):
            raise Unknowable
        return None if row is None or row.skip_reason else row

    def today(self, cited: Cited, before: Baseline) -> tuple[str, list[str]] | None:
        """The path and the lines of the cited file, or of the one that it has become; None if it is
        gone. Raises Unknowable."""
        lines = self.lines(cited.path)
        return self._renamed(cited, before) if lines is None else (cited.path, lines)

    def lines(self, path: str) -> list[str] | None:
        """The lines of a file; None if there is none any more. Raises Unknowable."""
        row = self.row(path)
        if not self.has(path):
            return None
        try:
            if row is None and not discover(self.path, only=[path]).files:
                raise Unknowable
            data = read_content(self.path, path)
        except CodeinfoError as error:
            raise Unknowable from error
        return lines_of(decode(data, row.encoding if row else ""))

    def is_as_ingested(self, row: SourceFile) -> bool:
        """Whether a file is the one that was ingested."""
        return digest_at(self.path, row.path, row.encoding) == row.sha256

    def has(self, path: str) -> bool:
        """Whether the folder, which is there, has such a file. Raises Unknowable."""
        try:
            with RootDirectory(self.path) as directory:
                try:
                    mode = directory.stat(path).st_mode
                except OSError as error:
                    # Nothing is mounted there, perhaps.
                    if not directory.entries("") or not _is_absent(error):
                        raise
                    return False
        except OSError as error:
            raise Unknowable from error
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise Unknowable
        return stat.S_ISREG(mode)

    def _renamed(self, cited: Cited, before: Baseline) -> tuple[str, list[str]] | None:
        """The path and the lines of the file that a missing one has become: one that was not there
        when it was cited, and has at least half of its lines. Of several, one with the same name is
        likelier than a better one without: that may be a copy of what was altered since. Raises
        Unknowable, also if there are too many files to tell."""
        wanted = Counter(line.strip() for line in before.lines if is_telling(line))
        best: tuple[float, str, list[str]] = (0, "", [])
        newer = self._newer(cited)
        end = time.monotonic() + SECONDS
        is_cut = len(newer) > MAX_READ
        for candidate in newer[:MAX_READ]:
            unlike = _unlikeness(candidate.path, cited.path)
            if best[0] == 1 or (best[0] and unlike > _unlikeness(best[1], cited.path)):
                break
            if wanted.total() < 2 and unlike[0]:
                break  # A line alone is in many files.
            if time.monotonic() > end:
                is_cut = True
                break
            try:
                lines = lines_of(decode(read_content(self.path, candidate.path)))
            except CodeinfoError:
                continue
            share = _share(wanted, lines)
            if share >= 0.5 and share > best[0] and not self._had(before, candidate.path):
                best = share, candidate.path, lines
        share, path, lines = best
        if share:
            return path, lines
        if is_cut:
            raise Unknowable
        return None

    def _had(self, before: Baseline, path: str) -> bool:
        return bool(before.commit) and commit_has(self.root, before.commit, path)

    def _newer(self, cited: Cited) -> Sequence[Candidate]:
        """The files that have been made or written since, the likeliest first."""
        since = seconds_of(cited.at) * 1e9
        newer = [
            file
            for file in self._files
            if (file.stat.ctime_ns or since) >= since
            and not self._was_there(file.path, cited)
            and is_inside(self._areas, self.root, file.path)
        ]
        newer.sort(key=lambda file: (_unlikeness(file.path, cited.path), file.path))
        return newer

    def _was_there(self, path: str, cited: Cited) -> bool:
        """Whether a file was there beside the cited one: as long as the index has both, or if it
        had the file already."""
        row = self._rows.get(path)
        return row is not None and (cited.path in self._rows or row[1] <= cited.generation)

    @cached_property
    def _files(self) -> Sequence[Candidate]:
        known = {path: state for path, (state, _) in self._rows.items()}
        try:
            return discover(self.path, known).files
        except CodeinfoError as error:
            raise Unknowable from error

    @cached_property
    def _rows(self) -> dict[str, tuple[FileStat, int]]:
        """The state of each ingested file, and the generation since which it is so."""
        rows = queries.live_files(self.root).ingested()
        columns = rows.values_list("path", "size", "mtime_ns", "ctime_ns", "since")
        return {path: (FileStat(*state), since) for path, *state, since in columns.iterator()}


def _is_absent(error: OSError) -> bool:
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def _unlikeness(path: str, cited: str) -> tuple[bool, bool]:
    """Whether a path has another name, and another ending."""
    name, other = cited.rpartition("/")[2], path.rpartition("/")[2]
    return name != other, name.rpartition(".")[2] != other.rpartition(".")[2]


def _share(wanted: Counter[str], lines: Sequence[str]) -> float:
    """How many of the wanted lines a file has, from 0 to 1."""
    there = Counter(line.strip() for line in lines if is_telling(line))
    return (wanted & there).total() / wanted.total() if wanted else 0.0
