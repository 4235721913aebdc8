"""The question of a Context call, and its answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from apps.core.values.surrogates import encodable
from apps.index.types import Filters
from apps.lookup.symbols.types import Place
from apps.retrieval.query import (
    MAX_QUERY,
    log_fields,
    parse_filters,
    parse_limit,
    parse_repositories,
    refuse,
    text_problem,
)
from apps.tools.context.form import compact_line
from apps.tools.context.tokens import estimate, estimate_quoted

DEFAULT_TOKENS = 4_000
MIN_TOKENS = 200
MAX_TOKENS = 20_000
# Tokens beside the text, of a line of a passage and of a text by itself: quotes and a comma.
LINE_TOKENS, TEXT_TOKENS = 1, 2
# Tokens of the keys of a row, and of those that some rows have: `form.compact_row`.
ROW_TOKENS, SYMBOL_TOKENS, OF_TOKENS, FLAG_TOKENS = 19, 6, 7, 5
# Tokens of the key of a list, and of a hint to passages that are all weak.
LIST_TOKENS, HINT_TOKENS = 5, 60

# passage: answers the question. definition, caller, test: of a name in the passages. mention: one
# line of a further file.
Role = Literal["passage", "definition", "caller", "test", "mention"]


@dataclass(frozen=True)
class ContextQuery:
    """A question, and how many tokens its answer may have."""

    text: str  # stripped, not empty, encodable as UTF-8
    repositories: tuple[str, ...] = ()  # repository ids; empty: all
    filters: Filters = field(default_factory=Filters)
    max_tokens: int = DEFAULT_TOKENS  # MIN_TOKENS to MAX_TOKENS

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "ContextQuery":
        """Check `{question, repository?, path?, language?, max_tokens?}`; unknown keys are ignored.

        Raises InvalidInput; its details.details lists all problems.
        """
        problems: list[str] = []
        text = data.get("question")
        if problem := text_problem("question", text):
            problems.append(problem)
        elif len(str(text)) > MAX_QUERY:
            problems.append(f"question must have at most {MAX_QUERY:,} characters")
        repositories = parse_repositories(data.get("repository"), problems)
        filters = parse_filters(data, problems)
        tokens = parse_limit(
            data.get("max_tokens"), DEFAULT_TOKENS, MAX_TOKENS, problems, name="max_tokens"
        )
        refuse(problems)
        text = encodable(str(text)).strip()
        return cls(text, repositories, filters, max(MIN_TOKENS, tokens))

    def as_log(self) -> dict[str, Any]:
        """Scope and size for the log. The question is private and left out."""
        return log_fields(self.repositories, self.max_tokens, self.filters)


@dataclass(frozen=True)
class Piece:
    """Consecutive lines of a file."""

    place: Place
    start_line: int  # 1-based
    text: str
    role: Role
    symbol: str = ""  # the definition that contains the lines
    of: str = ""  # the name that a definition, a caller or a test is about
    score: float | None = None  # of a passage: squared L2 distance; None: unknown
    is_weak: bool = False  # nothing passed the cutoff
    is_cut: bool = False  # the passage, or the definition, has more lines

    @property
    def end_line(self) -> int:
        return self.start_line + self.text.count("\n")

    @property
    def is_line(self) -> bool:
        """Whether it is one line that stands for more: the compact answer has it as a text."""
        return self.role in ("caller", "test", "mention")

    @cached_property
    def tokens(self) -> int:
        """About how many tokens it has in the compact answer."""
        if self.is_line:
            place = {"repo": self.place.repo, "relPath": self.place.path}
            line = {"startLine": self.start_line, "symbol": self.symbol, "chunk": self.text}
            return estimate_quoted(compact_line(place | line)) + TEXT_TOKENS
        # The ends of lines stand for the quotes and commas of a list.
        return self.row_tokens + estimate_quoted(self.text) + LINE_TOKENS

    @property
    def row_tokens(self) -> int:
        """The tokens of its row beside its lines."""
        facts = f"{self.place.repo} {self.place.path} {self.start_line}-{self.end_line}"
        tokens = ROW_TOKENS + estimate(f"{facts} {self.symbol}")
        tokens += FLAG_TOKENS * (self.is_weak + self.is_cut)
        tokens += SYMBOL_TOKENS if self.symbol else 0
        return tokens + (OF_TOKENS + estimate(self.of) if self.of else 0)

    def as_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {
            **self.place.as_wire(),
            "kind": self.role,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "chunk": self.text,
        }
        if self.score is not None:
            wire["score"] = self.score
        facts = ("symbol", self.symbol), ("of", self.of), ("weak", self.is_weak)
        wire.update((key, value) for key, value in (*facts, ("cut", self.is_cut)) if value)
        return wire


@dataclass(frozen=True)
class Context:
    """The answer: pieces in the order of their use, and what there was no room for."""

    pieces: tuple[Piece, ...]
    tokens: int  # estimated
    left_out: tuple[str, ...]  # `path:lines` of passages that found no room, best first
    degraded: str = ""  # which part of the index was not searched
    missing_words: tuple[str, ...] = ()  # words of the question that no passage has

    def as_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "results": [piece.as_wire() for piece in self.pieces],
            "tokens": self.tokens,
        }
        optional = {
            "leftOut": list(self.left_out),
            "missingWords": list(self.missing_words),
            "degraded": self.degraded,
        }
        return wire | {key: value for key, value in optional.items() if value}
