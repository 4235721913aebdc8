"""Passages like some lines of an ingested file."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.code.cells import cells_of
from apps.core.config import config
from apps.core.errors import NotFound
from apps.embedding.words import stems
from apps.index.paths import map_path
from apps.index.types import Filters
from apps.lookup.cells import lines_in_text
from apps.lookup.ingested import lines_of_file, live_file
from apps.lookup.symbols import OutlineQuery
from apps.retrieval.query import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    SearchQuery,
    log_fields,
    parse_filters,
    parse_limit,
    parse_repositories,
    refuse,
)
from apps.retrieval.repositories import find_root
from apps.retrieval.results import Match, passes, setting_of_cutoff
from apps.retrieval.search import search

# Characters of the lines that are compared. The model reads no more, and each word costs time.
MAX_CHARS = 2_000
MAX_LINE = 10_000_000
# Candidates. The ranking of a search prefers definitions of the names in its text. Here those come
# first that are near and share the words of the lines.
CANDIDATES = 60
# The distance that sharing all words is worth.
SHARED_WORDS = 1.5


@dataclass(frozen=True)
class RelatedQuery:
    """Lines of a file, and where to look for passages like them."""

    file: OutlineQuery
    start_line: int  # 1-based
    end_line: int  # 1-based, included
    repositories: tuple[str, ...] = ()  # repository ids to search; empty: all
    limit: int = DEFAULT_LIMIT  # 1 to MAX_LIMIT matches
    filters: Filters = field(default_factory=Filters)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "RelatedQuery":
        """Check `{repository, path, start_line, end_line?, within?, within_path?, language?,
        limit?}`. Unknown keys are ignored.

        Raises InvalidInput; its details.details lists all problems.
        """
        file = OutlineQuery.parse(data)
        problems: list[str] = []
        start = parse_limit(data.get("start_line"), 0, MAX_LINE, problems, name="start_line")
        if not data.get("start_line"):
            problems.append("start_line is required")
        end = parse_limit(data.get("end_line"), start, MAX_LINE, problems, name="end_line")
        if end < start:
            problems.append("end_line must not be before start_line")
        scope: list[str] = []
        repositories = parse_repositories(data.get("within"), scope)
        filters = parse_filters({**data, "path": data.get("within_path")}, scope)
        problems += [
            problem.replace("repository", "within").replace("path", "within_path")
            for problem in scope
        ]
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        refuse(problems)
        return cls(file, start, end, repositories, limit, filters)

    def as_log(self) -> dict[str, Any]:
        return log_fields(self.repositories, self.limit, self.filters)


def related_code(query: RelatedQuery) -> dict[str, Any]:
    """The output of RelatedCode: as VectorSearch, without the lines themselves.

    Raises as `search`, and NotFound FILE_NOT_FOUND, NotFound LINES_NOT_FOUND and Unavailable
    TEXT_LOST.
    """
    root = find_root(query.file.repository)
    file = live_file(root, query.file.path, query.file.areas)
    lines = lines_of_file(root, file)
    start, end = lines_in_text(cells_of(lines), query.start_line, query.end_line)
    query = replace(query, start_line=start, end_line=end or len(lines))
    text = "\n".join(lines[query.start_line - 1 : query.end_line])[:MAX_CHARS].strip()
    if not text:
        raise NotFound(
            f"{file.path} has {len(lines):,} lines, and none of lines {query.start_line} to "
            f"{query.end_line} has text.",
            code="LINES_NOT_FOUND",
        )
    search_query = SearchQuery(text, query.repositories, CANDIDATES, query.filters, is_code=True)
    room = CANDIDATES * config().tool_chunk_max_chars
    result = search(search_query, with_cutoff=False, total_chars=room)
    own = map_path(root, file.path).container_path  # also of the same file in a nested root
    others = [
        match
        for match in result.matches
        if match.container_path != own or not _overlaps(match, query)
    ]
    alike = _most_alike(text, others)
    near = [match for match in alike if passes(match, setting_of_cutoff())]
    fallback = alike[: config().retrieval_fallback_chunks]
    weak = [replace(match, is_weak=True) for match in fallback]
    kept = tuple((near or weak)[: query.limit])
    # A word of the lines that no passage has tells nothing here.
    return replace(result, matches=kept, missing_words=()).as_wire()


def _most_alike(text: str, matches: Sequence[Match]) -> list[Match]:
    """The matches, first those that are near and share most words of the text. A word that many of
    them have counts less."""
    words = [set(stems(match.chunk)) for match in matches]
    wanted = set(stems(text))
    weight = {
        word: math.log((len(matches) + 1) / (0.5 + sum(word in of_match for of_match in words)))
        for word in wanted
    }
    total = sum(weight.values()) or 1.0

    def unlike(index: int) -> float:
        shared = sum(weight[word] for word in wanted & words[index]) / total
        return matches[index].distance - SHARED_WORDS * shared

    return [matches[index] for index in sorted(range(len(matches)), key=unlike)]


def _overlaps(match: Match, query: RelatedQuery) -> bool:
    if match.start_line is None or match.end_line is None:
        return False
    return match.start_line <= query.end_line and query.start_line <= match.end_line
