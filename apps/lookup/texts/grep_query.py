"""The query of Grep: its wire keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from apps.core.values.surrogates import encodable
from apps.index.types import Filters
from apps.lookup.texts.patterns import MAX_PATTERN, Pattern, in_any_form
from apps.retrieval.query import (
    log_fields,
    parse_filters,
    parse_flag,
    parse_limit,
    parse_repositories,
    refuse,
)

Mode = Literal["content", "files", "count"]
MODES: tuple[str, ...] = get_args(Mode)
DEFAULT_LIMIT, MAX_LIMIT = 50, 500
MAX_OFFSET = 100_000
MAX_CONTEXT = 20
OPTIONS = ("fixed", "ignore_case", "word", "multiline")


@dataclass(frozen=True)
class GrepQuery:
    """A pattern, and where to look for it."""

    pattern: Pattern
    mode: Mode = "content"
    context: int = 0  # lines before and after each match
    limit: int = DEFAULT_LIMIT  # rows: lines, or files
    offset: int = 0  # rows to leave out, without a cursor
    cursor: Any = None  # of the page before
    repositories: tuple[str, ...] = ()  # repository ids; empty: all
    filters: Filters = field(default_factory=Filters)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "GrepQuery":
        """Check `{pattern, fixed?, ignore_case?, word?, multiline?, mode?, context?, limit?,
        offset?, cursor?, repository?, path?, language?}`. Unknown keys are ignored.

        Raises InvalidInput; its details.details lists all problems.
        """
        problems: list[str] = []
        text = data.get("pattern")
        if text is not None and not isinstance(text, str):
            problems.append("pattern must be a string")
        elif not text:
            problems.append("pattern is required")
        elif len(text) > MAX_PATTERN:
            problems.append(f"pattern must have at most {MAX_PATTERN:,} characters")
        options = {name: parse_flag(data.get(name), name, problems) for name in OPTIONS}
        mode: Any = data.get("mode") or "content"
        if mode not in MODES:
            problems.append(f"mode must be {', '.join(MODES)}")
        context = parse_count(data, "context", MAX_CONTEXT, problems)
        offset = parse_count(data, "offset", MAX_OFFSET, problems)
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        repositories = parse_repositories(data.get("repository"), problems)
        filters = parse_filters(data, problems)
        refuse(problems)
        pattern = in_any_form(Pattern(encodable(str(text)), **options))
        cursor = data.get("cursor")
        return cls(pattern, mode, context, limit, offset, cursor, repositories, filters)

    def as_log(self) -> dict[str, Any]:
        """Scope and size for the log. The pattern is private and left out."""
        return {**log_fields(self.repositories, self.limit, self.filters), "mode": self.mode}


def parse_count(data: Mapping[str, Any], name: str, maximum: int, problems: list[str]) -> int:
    """An integer cut to `maximum`; 0 if it is missing or below."""
    value = data.get(name)
    if not value or (isinstance(value, int) and not isinstance(value, bool) and value < 0):
        return 0
    return parse_limit(value, 0, maximum, problems, name=name)
