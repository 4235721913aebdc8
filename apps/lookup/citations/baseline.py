"""The text that a citation was of: as it is stored, in a commit, or as an answer quotes it."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.code.chunking import decode, lines_of
from apps.core.errors import CodeinfoError, InvalidInput
from apps.core.values.times import wire_time
from apps.index.models import Root, SourceFile
from apps.index.types import Area
from apps.lookup.citations.verdict import Comparison
from apps.lookup.history.diff import texts_of
from apps.lookup.history.query import HistoryQuery
from apps.lookup.history.subject import subject_of
from apps.lookup.ingested import ingested_lines
from apps.retrieval.repositories import repo_id


@dataclass(frozen=True)
class Cited:
    """A citation.

    start, end: lines, 1-based, both included
    lines: of the file as it was cited, some in succession; () if they are not known
    first: number of the first of `lines`
    commit: id or name of the commit whose lines they are; "" if it is not known
    generation, at: of the repository when they were looked up; 0 and "" if that is not known
    """

    repo: str
    path: str
    start: int
    end: int
    lines: tuple[str, ...] = ()
    first: int = 1
    commit: str = ""
    generation: int = 0
    at: str = ""


@dataclass(frozen=True, eq=False)
class Baseline:
    """A file as it was cited; as in Comparison.

    commit: name of the commit that has it, if it comes from there
    """

    lines: Sequence[str]
    first: int = 1
    is_whole: bool = True
    commit: str = ""

    def compared(self, now: Sequence[str]) -> Comparison:
        """Compare it with the lines of today."""
        return Comparison(self.lines, now, first=self.first, is_whole=self.is_whole)


class Unknowable(Exception):
    """It cannot be told: the folder is away, the file is excluded, may not be looked into, or
    cannot be read."""


def baseline_of(
    cited: Cited, root: Root, row: SourceFile | None, areas: Sequence[Area]
) -> Baseline | None:
    """What a citation was of; None if that is not known. Raises Unknowable."""
    if row is not None and is_of_then(cited, root, row):
        lines = ingested_lines([(root, str(row.document))]).get(str(row.document))
        if lines is not None and fits(cited, lines):
            return Baseline(lines)
    if cited.commit:
        lines = _lines_of_commit(cited, root, row, areas)
        if lines is not None and fits(cited, lines):
            return Baseline(lines, commit=cited.commit)
    return Baseline(cited.lines, cited.first, is_whole=False) if cited.lines else None


def is_of_then(cited: Cited, root: Root, row: SourceFile) -> bool:
    """Whether a row that is live was so when its lines were looked up."""
    return row.since <= cited.generation and cited.at >= wire_time(root.created_at)


def fits(cited: Cited, lines: Sequence[str]) -> bool:
    """Whether a text has the lines that are known at their place. A folder may have differed from
    the commit that was checked out, and a run may have ended between a look-up and its note."""
    there = lines[cited.first - 1 : cited.first - 1 + len(cited.lines)]
    return len(there) == len(cited.lines) and all(map(_is_like, there, cited.lines))


def _is_like(line: str, known: str) -> bool:
    """Whether a line is the known one, of which tools cut the end if it is long."""
    start, cut, _ = known.rpartition("… (")
    return line.rstrip() == known.rstrip() or (bool(cut) and line.startswith(start))


def _lines_of_commit(
    cited: Cited, root: Root, row: SourceFile | None, areas: Sequence[Area]
) -> list[str] | None:
    """The lines of the file in the commit; None if they cannot be had. Raises Unknowable."""
    query = HistoryQuery("diff", repo_id(root), cited.path, areas=tuple(areas))
    try:
        with subject_of(query) as subject:
            commit = subject.commit(cited.commit)
            blob = subject.git.object_id(f"{commit}:{subject.in_repository(cited.path)}")
            data = texts_of(subject, [blob]).get(blob) if blob else None
            if data is None:
                return None
            if subject.visible.refuse(cited.path, data):
                raise Unknowable
    except InvalidInput as error:
        raise Unknowable from error
    except CodeinfoError:
        return None
    return lines_of(decode(data, row.encoding if row else ""))


def commit_has(root: Root, commit: str, path: str) -> bool:
    """Whether a commit has a file; False if that cannot be told."""
    try:
        with subject_of(HistoryQuery("diff", repo_id(root), path)) as subject:
            place = f"{subject.commit(commit)}:{subject.in_repository(path)}"
            return bool(subject.git.object_id(place))
    except CodeinfoError:
        return False


def cited_at(index: object) -> tuple[str, int, str]:
    """Commit, generation and time of a citation, of what an answer stands on (`index`)."""
    facts = index if isinstance(index, dict) else {}
    generation = facts.get("generation")
    commit, at = (str(facts.get(name) or "") for name in ("commit", "ingestedAt"))
    return commit, generation if isinstance(generation, int) else 0, at
