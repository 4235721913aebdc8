"""ListFiles: the ingested files as a tree to a depth, or those that match a glob."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from apps.index import globs, queries
from apps.index.models import Root
from apps.index.types import Filters
from apps.lookup.symbols.project import LiveFile
from apps.lookup.symbols.types import filled
from apps.lookup.texts.folders import most_languages
from apps.lookup.texts.grep_query import MAX_OFFSET, parse_count
from apps.lookup.texts.table import file_table
from apps.retrieval.overlaps import is_nested, repeated_files
from apps.retrieval.paging import PAGE, Pager
from apps.retrieval.query import (
    fits,
    parse_filters,
    parse_flag,
    parse_limit,
    parse_repositories,
    refuse,
)
from apps.retrieval.repositories import repo_id, roots_named
from apps.retrieval.scope import narrowed

DEFAULT_LIMIT, MAX_LIMIT = 100, 1_000
DEFAULT_DEPTH, MAX_DEPTH = 2, 20
MAX_LANGUAGES = 3  # that are named of a folder


@dataclass(frozen=True)
class ListQuery:
    """Which files, and how deep."""

    filters: Filters = field(default_factory=Filters)
    depth: int = DEFAULT_DEPTH  # folders below `path`; without meaning for a glob
    skipped: bool = False  # the files that were left out instead, with reasons
    limit: int = DEFAULT_LIMIT
    offset: int = 0  # rows to leave out, without a cursor
    repositories: tuple[str, ...] = ()
    cursor: Any = None  # of the page before

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "ListQuery":
        """Check `{repository?, path?, language?, depth?, skipped?, limit?, offset?, cursor?}`.
        Unknown keys are ignored. Raises InvalidInput with all problems."""
        problems: list[str] = []
        skipped = parse_flag(data.get("skipped"), "skipped", problems)
        filters = parse_filters(data, problems)
        depth = parse_limit(data.get("depth"), DEFAULT_DEPTH, MAX_DEPTH, problems, name="depth")
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        offset = parse_count(data, "offset", MAX_OFFSET, problems)
        repositories = parse_repositories(data.get("repository"), problems)
        refuse(problems)
        cursor = data.get("cursor")
        return cls(filters, depth, skipped, limit, offset, repositories, cursor)

    @property
    def is_glob(self) -> bool:
        return globs.has_wildcards(self.filters.path) or "{" in self.filters.path


def list_files(query: ListQuery) -> dict[str, Any]:
    """The output of ListFiles: a row for each file or folder, by repository and path.

    Raises InvalidInput CURSOR_INVALID, Conflict INGEST_REQUIRED and CURSOR_EXPIRED, and NotFound
    REPO_NOT_FOUND.
    """
    roots, filters = narrowed(roots_named(query.repositories), query.filters)
    pager = Pager.of("ListFiles", query, roots)
    query = replace(query, filters=filters)
    rows = list(_skipped(roots, query) if query.skipped else _entries(roots, query))
    results, page = pager.page(rows, query.limit, _place, query.offset, narrow="path")
    names = {row["repo"] for row in results}
    return {
        "results": results,
        "generations": {repo_id(root): root.generation for root in roots if repo_id(root) in names},
        "truncated": page.more,
        PAGE: page,
    }


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["repo"], row["relPath"]


def _entries(roots: Sequence[Root], query: ListQuery) -> Iterator[dict[str, Any]]:
    repeated = repeated_files(roots, query.filters)
    base = _base(query)
    for root in roots:
        left_out = repeated.get(root.id, ())
        entries: dict[str, list[LiveFile]] = {}
        for file in file_table(root).files:
            if file.path not in left_out and fits(query.filters, root, file.path, file.language):
                entries.setdefault(_entry(file.path, base, query), []).append(file)
        repo = repo_id(root)
        for path, files in entries.items():
            yield {"repo": repo, "relPath": path, **_facts(path, files)}


def _base(query: ListQuery) -> str:
    """The folder that the depth is counted from, with its slash."""
    path = query.filters.path
    return path[: path.rfind("/") + 1]


def _entry(path: str, base: str, query: ListQuery) -> str:
    """The path of a file, or of the folder that stands for it at the depth limit, which ends with a
    slash."""
    names = path[len(base) :].split("/")
    is_shown = query.is_glob or len(names) <= query.depth
    return path if is_shown else base + "/".join(names[: query.depth]) + "/"


def _facts(path: str, files: Sequence[LiveFile]) -> dict[str, Any]:
    size = sum(file.size for file in files)
    if not path.endswith("/"):
        return {"kind": "file", "size": size, **filled(language=files[0].language)}
    languages = most_languages(files, MAX_LANGUAGES)
    return {"kind": "folder", "size": size, "files": len(files), "languages": languages}


def _skipped(roots: Sequence[Root], query: ListQuery) -> Iterator[dict[str, Any]]:
    for root in roots:
        rows = queries.generation_files(root).skipped().order_by("path")
        facts = rows.values_list("path", "language", "size", "skip_reason")
        listed = _skipped_inside(root, roots, query)
        for path, language, size, reason in facts.iterator():
            if path not in listed and fits(query.filters, root, path, language):
                row = {"repo": repo_id(root), "relPath": path, "kind": "file", "size": size}
                yield {**row, "reason": reason}


def _skipped_inside(root: Root, roots: Sequence[Root], query: ListQuery) -> set[str]:
    """Paths of skipped files that roots inside this one list, too."""
    return {
        f"{PurePosixPath(inner.path).relative_to(root.path)}/{path}"
        for inner in roots
        if is_nested(inner, root)
        for path, language in queries.generation_files(inner)
        .skipped()
        .values_list("path", "language")
        if fits(query.filters, inner, path, language)
    }
