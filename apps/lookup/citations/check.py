"""Checks citations against the files on the disk."""

from collections.abc import Sequence
from typing import NamedTuple

from apps.code.notebooks import is_notebook_path
from apps.core.errors import NotFound
from apps.index.types import Area
from apps.lookup.citations.baseline import (
    Baseline,
    Cited,
    Unknowable,
    baseline_of,
    fits,
    is_of_then,
)
from apps.lookup.citations.folder import Folder
from apps.lookup.citations.verdict import Comparison, Verdict
from apps.lookup.deadline import Deadline
from apps.retrieval.query import is_inside
from apps.retrieval.repositories import find_root

SECONDS = 5.0  # for all citations of an answer; those that are left are unknown


class Checked(NamedTuple):
    """What has become of a citation.

    path, start: where its lines are now; None if they are not
    is_ingested: whether they moved and were ingested there; else the viewer follows them itself
    """

    cited: Cited
    verdict: Verdict
    path: str = ""
    start: int | None = None
    is_ingested: bool = False

    @property
    def end(self) -> int | None:
        return None if self.start is None else self.start + self.cited.end - self.cited.start


class Checker:
    """Checks the citations of one answer. Those of one file come after each other: it is read once.

    areas: files must be in one of them, if there are some
    """

    def __init__(self, areas: Sequence[Area] = ()) -> None:
        self.areas = areas
        self.deadline = Deadline(SECONDS)
        self._folders: dict[str, Folder] = {}
        self._file = ("", "")
        self._baselines: dict[tuple[object, ...], Baseline] = {}
        self._compared: dict[Baseline, tuple[Comparison, str] | None] = {}

    def folder(self, repo: str) -> Folder:
        """The folder of a repository. Raises NotFound REPO_NOT_FOUND."""
        if repo not in self._folders:
            self._folders[repo] = Folder(find_root(repo), self.areas)
        return self._folders[repo]

    def check(self, cited: Cited) -> Checked:
        if self.deadline.is_over:
            return Checked(cited, "unknown")
        try:
            folder = self.folder(cited.repo)
            if not is_inside(self.areas, folder.root, cited.path):
                return Checked(cited, "unknown")
            if is_notebook_path(cited.path):
                return _in_notebook(cited, folder)
            return self._checked(cited, folder)
        except (NotFound, Unknowable):
            return Checked(cited, "unknown")

    def _checked(self, cited: Cited, folder: Folder) -> Checked:
        compared = self._comparison(cited, folder)
        if compared is None:
            return Checked(cited, "gone")
        comparison, path = compared
        verdict, start = comparison.finding(cited.start, cited.end)
        if start is None:
            return Checked(cited, verdict)
        if path != cited.path:
            verdict = "moved"
        row = folder.row(path) if verdict == "moved" else None
        is_ingested = row is not None and not is_of_then(cited, folder.root, row)
        return Checked(cited, verdict, path, start, is_ingested)

    def before(self, cited: Cited, folder: Folder) -> Baseline | None:
        """The file as it was cited; None if that is not known. Raises Unknowable."""
        if self._file != (cited.repo, cited.path):
            self._file = (cited.repo, cited.path)
            self._baselines, self._compared = {}, {}
        key = (cited.commit, cited.generation, cited.at)
        known = self._baselines.get(key)
        if known is None or not fits(cited, known.lines):
            known = baseline_of(cited, folder.root, folder.row(cited.path), self.areas)
            if known is not None and known.is_whole:
                self._baselines[key] = known
        return known

    def _comparison(self, cited: Cited, folder: Folder) -> tuple[Comparison, str] | None:
        """The file of a citation then and now, and its path; None if it is gone."""
        before = self.before(cited, folder)
        if before is None:
            raise Unknowable
        if before not in self._compared:
            today = folder.today(cited, before)
            self._compared[before] = today and (before.compared(today[1]), today[0])
        return self._compared[before]


def _in_notebook(cited: Cited, folder: Folder) -> Checked:
    """Lines of a notebook are not those of its file: they hold as long as it stays as it was."""
    row = folder.row(cited.path)
    is_same = row and is_of_then(cited, folder.root, row) and folder.is_as_ingested(row)
    return Checked(cited, "ok", cited.path, cited.start) if is_same else Checked(cited, "unknown")


def check(cited: Sequence[Cited], areas: Sequence[Area] = ()) -> list[Checked]:
    """Check the citations of one answer; the result has their order."""
    checker = Checker(areas)
    by_file = sorted(set(cited), key=lambda one: (one.repo, one.path))
    checked = {one: checker.check(one) for one in by_file}
    return [checked[one] for one in cited]
