"""Checks the citations in a text that anybody may have written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.code.languages import known_type
from apps.core.errors import NotFound
from apps.core.values.surrogates import is_storable
from apps.index.models import Root, SourceFile
from apps.index.paths import map_path
from apps.index.types import Area
from apps.lookup.citations.baseline import Baseline, Cited, Unknowable
from apps.lookup.citations.check import Checked, Checker
from apps.lookup.citations.folder import Folder
from apps.lookup.citations.quotes import MAX_TEXT, Quote, quotes_of
from apps.lookup.git.refs import MAX_NAME
from apps.lookup.marking import marked
from apps.lookup.symbols.types import Place
from apps.retrieval.query import areas_of, is_inside, optional_text, parse_repositories, refuse
from apps.retrieval.repositories import is_named, roots_named

# Beside those of `verdict`. not_found: no file has the quoted lines, or there is no such file
# exists, out_of_range: whether the file has lines of which no text is known
NOT_FOUND, EXISTS, OUT_OF_RANGE = "not_found", "exists", "out_of_range"
HOLDING = ("ok", "moved", EXISTS)


@dataclass(frozen=True)
class CitationsQuery:
    """A text whose citations are checked."""

    text: str
    repositories: tuple[str, ...] = ()  # of paths that name none; empty: all
    commit: str = ""  # whose lines they are
    areas: tuple[Area, ...] = ()  # files must be in one of them

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "CitationsQuery":
        """Check `{text, repository?, commit?}`. Unknown keys are ignored. Raises InvalidInput with
        all problems."""
        problems: list[str] = []
        text = optional_text(data, "text", MAX_TEXT, problems)
        if not text.strip() and not problems:
            problems.append("text is required")
        repositories = parse_repositories(data.get("repository"), problems)
        commit = optional_text(data, "commit", MAX_NAME, problems).strip()
        refuse(problems)
        return cls(text, repositories, commit, areas_of(data))


@marked
def check_text(query: CitationsQuery) -> dict[str, Any]:
    """The output of CheckCitations. Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND."""
    roots = roots_named(query.repositories)
    checker = Checker(query.areas)
    found = [(quote, _files_of(quote, roots, query.areas)) for quote in quotes_of(query.text)]
    found = [(quote, files) for quote, files in found if files or _is_path(quote.path)]
    # Citations of one file come after each other.
    order = sorted(range(len(found)), key=lambda n: [(f.repo, f.path) for f in found[n][1]])
    rows = {n: _row(*found[n], query, checker) for n in order}
    results = [rows[n] for n in range(len(found))]
    holding = sum(row["verdict"] in HOLDING for row in results)
    summary = {"summary": summary_of(len(results), holding)} if results else {}
    return {**summary, "results": results}


def summary_of(count: int, holding: int) -> str:
    """`5 citations, 4 still hold`."""
    citations = f"{count:,} citation{'' if count == 1 else 's'}"
    return f"{citations}, {holding:,} still hold{'s' * (holding == 1)}"


def _is_path(path: str) -> bool:
    """Whether a text is a path of a file, and not a host or a time of day."""
    return not path.startswith("//") and ("/" in path or known_type(path) is not None)


def _files_of(quote: Quote, roots: Sequence[Root], areas: Sequence[Area]) -> list[Place]:
    """The file that a citation names; several if it does not say which one, none for no file that
    may be looked into. Of a path that no ingested file has, the file that it would be."""
    path = quote.path.removeprefix("./")
    places = [
        file
        for file in _places(path, roots)
        if _leads_below(file.path) and is_inside(areas, file.root, file.path)
    ]
    rows = SourceFile.objects.live_in(file.root for file in places)
    rows = rows.filter(path__in={file.path for file in places})
    known = set(rows.values_list("root", "path"))
    live = [file for file in places if (file.root.id, file.path) in known]
    files = live or (places if _is_path(path) else [])
    # A path with its repository says more than one without.
    return files[:1] if files and files[0].path != path else files


def _leads_below(path: str) -> bool:
    """Whether a path can be that of a file in a folder. An address may spell a NUL."""
    return is_storable(path) and {"", ".", ".."}.isdisjoint(path.split("/"))


def _places(path: str, roots: Sequence[Root]) -> Iterator[Place]:
    """What a path may mean: `repo/path` or a path of the machine, else a path in any of them."""
    first, _, rest = path.partition("/")
    for root in roots:
        mapped = map_path(root)
        for folder in (mapped.container_path, mapped.host_path):
            if path.startswith(f"{folder.rstrip('/')}/"):
                yield Place(root, path.removeprefix(f"{folder.rstrip('/')}/"), "")
    yield from (Place(root, rest, "") for root in roots if rest and is_named(root, first))
    if not path.startswith("/"):
        yield from (Place(root, path, "") for root in roots)


def _row(
    quote: Quote, files: Sequence[Place], query: CitationsQuery, checker: Checker
) -> dict[str, Any]:
    span = f"{quote.first}" if quote.end == quote.first else f"{quote.first}-{quote.end}"
    row: dict[str, Any] = {"cited": f"{quote.path}:{span}"}
    commit = quote.commit or query.commit
    if len(files) != 1:
        is_absent = not (commit or quote.lines or any(_may_be(file, checker) for file in files))
        return row | {"verdict": NOT_FOUND if is_absent or not files else "unknown"}
    (file,) = files
    cited = Cited(file.repo, file.path, quote.first, quote.end, quote.lines, quote.first, commit)
    verdict, path, start = _verdict(cited, checker)
    row |= {"verdict": verdict} | replace(file, path=path or file.path).as_wire()
    if start is not None:
        row |= {"startLine": start, "endLine": start + quote.end - quote.first}
    return row


def _may_be(file: Place, checker: Checker) -> bool:
    """Whether a file may be on the disk."""
    try:
        return checker.deadline.is_over or checker.folder(file.repo).has(file.path)
    except (NotFound, Unknowable):
        return True


def _verdict(cited: Cited, checker: Checker) -> tuple[str, str, int | None]:
    """What has become of a citation, and path and line where it is now."""
    if checker.deadline.is_over:
        return "unknown", "", None
    try:
        folder = checker.folder(cited.repo)
        before = checker.before(cited, folder) if cited.commit else None
        if before is not None and before.is_whole:
            return _since(cited, before, checker)
        if cited.lines:
            return _quoted(cited, folder)
        if (lines := folder.lines(cited.path)) is None:
            return NOT_FOUND, "", None
        is_there = cited.start >= 1 and cited.end <= len(lines)
        return (EXISTS if is_there else OUT_OF_RANGE), "", None
    except (NotFound, Unknowable):
        return "unknown", "", None


def _since(cited: Cited, before: Baseline, checker: Checker) -> tuple[str, str, int | None]:
    if cited.end > len(before.lines):
        return OUT_OF_RANGE, "", None
    checked: Checked = checker.check(cited)
    return checked.verdict, checked.path, checked.start


def _quoted(cited: Cited, folder: Folder) -> tuple[str, str, int | None]:
    """Where a quote is of which only the text is known."""
    before = Baseline(cited.lines, cited.first, is_whole=False)
    if (today := folder.today(cited, before)) is None:
        return NOT_FOUND, "", None
    path, lines = today
    verdict, start = before.compared(lines).finding_by_text(cited.start, cited.end)
    if start is None:
        return (NOT_FOUND if verdict == "gone" else verdict), "", None
    return ("ok" if verdict == "ok" and path == cited.path else "moved"), path, start
