"""The complete list of skipped files and files with a problem: by reason, in pages, as CSV."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

from django.db.models import Count, F, Q

from apps.index.models import IngestRun, Root, SourceFile, SourceFileQuerySet
from apps.ingest.types import LeftOut

PAGE_SIZE = 200
# Spreadsheets execute a cell that starts with one of these (CSV injection, OWASP).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class SkipList:
    """One page of the list."""

    reasons: tuple[tuple[str, int], ...]  # (kind, count) of the whole list, most frequent first
    chosen: str  # the kind that the list is filtered by; "" for all
    files: tuple[SourceFile, ...]
    next_page: int | None
    matching: int  # files of the chosen kind

    @property
    def total(self) -> int:
        return sum(count for _, count in self.reasons)


def left_out_of(run: IngestRun) -> LeftOut:
    """Return what git did not track when a run listed its folder."""
    return LeftOut(**run.left_out)


def left_out_of_root(root: Root) -> LeftOut:
    """Return `left_out_of` the run that published last."""
    last = root.last_run_id
    run = IngestRun.objects.filter(id=last).first() if last else None
    return left_out_of(run) if run else LeftOut()


def kind(reason: str) -> str:
    """Return the group of a reason: "Too large: over 1 MB" → "Too large"."""
    return reason.partition(":")[0]


def page(files: SourceFileQuerySet, chosen: str = "", number: int = 1) -> SkipList:
    """Return page `number`, from 1, of the files skipped for one kind of reason, or for any."""
    counts: Counter[str] = Counter()
    for reason, count in files.order_by().values_list(F("reason")).annotate(Count("id")):
        counts[kind(reason)] += count
    matching = counts[chosen] if chosen else counts.total()
    start = (number - 1) * PAGE_SIZE
    rows = tuple(filtered(files, chosen)[start : start + PAGE_SIZE])
    more = start + len(rows) < matching
    return SkipList(
        tuple(counts.most_common()), chosen, rows, number + 1 if more else None, matching
    )


def filtered(files: SourceFileQuerySet, chosen: str) -> SourceFileQuerySet:
    if not chosen:
        return files
    return files.filter(Q(reason=chosen) | Q(reason__startswith=f"{chosen}:"))


def csv_lines(files: SourceFileQuerySet, left_out: LeftOut) -> Iterator[str]:
    """Yield the list as CSV lines (path, reason, bytes), and the names of what git does not
    track."""
    yield "path,reason,bytes\r\n"
    for file in files.iterator(chunk_size=1000):
        yield _csv_line(file.path, file.skip_reason or file.problem, file.size)
    for path, reason in left_out.names:
        yield _csv_line(path, reason, "")


def _csv_line(path: str, reason: str, size: int | str) -> str:
    line = StringIO()
    harmless = f"'{path}" if path.startswith(FORMULA_STARTS) else path
    csv.writer(line).writerow([harmless, reason, size])
    return line.getvalue()
