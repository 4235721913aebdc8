"""The list of skipped files and of those with a problem: by reason, in pages, as CSV. It is
complete, however long."""

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

from django.db.models import Count, F, Q

from apps.index import queries
from apps.index.models import IngestRun, Root, SourceFile, SourceFileQuerySet

PAGE_SIZE = 200
# A cell that begins like a formula is run by spreadsheets.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class SkipList:
    """One page of what was left out. `reasons` counts all of it, most frequent first."""

    reasons: tuple[tuple[str, int], ...]
    chosen: str
    files: tuple[SourceFile, ...]
    next_page: int | None
    matching: int

    @property
    def total(self) -> int:
        return sum(count for _, count in self.reasons)


def of_root(root: Root) -> SourceFileQuerySet:
    return queries.live_files(root).listed()


def of_run(run: IngestRun) -> SourceFileQuerySet:
    return queries.listed_by(run)


def kind(reason: str) -> str:
    """ "Too large: over 1 MB" → "Too large": what reasons are grouped by."""
    return reason.partition(":")[0]


def page(files: SourceFileQuerySet, chosen: str = "", number: int = 1) -> SkipList:
    """Page `number` (from 1) of the files skipped for one kind of reason, or for any."""
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


def csv_lines(files: SourceFileQuerySet) -> Iterator[str]:
    """The list as CSV (path, reason, bytes), a line at a time."""
    yield "path,reason,bytes\r\n"
    for file in files.iterator(chunk_size=1000):
        line = StringIO()
        csv.writer(line).writerow(
            [_harmless(file.path), file.skip_reason or file.problem, file.size]
        )
        yield line.getvalue()


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell
