"""The query of Impact: its wire keys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.index.types import Area, Filters
from apps.lookup.git.refs import MAX_NAME
from apps.retrieval.query import (
    MAX_ID,
    areas_of,
    log_fields,
    optional_text,
    parse_limit,
    refuse,
    text_problem,
)

DEFAULT_BASE = "HEAD"
DEFAULT_DEPTH, MAX_DEPTH = 2, 5
DEFAULT_LIMIT, MAX_LIMIT = 50, 1_000
MAX_PATCH = 900_000  # characters


@dataclass(frozen=True)
class ImpactQuery:
    """A change of a repository."""

    repository: str
    base: str = DEFAULT_BASE  # a commit, with which the work tree is compared
    patch: str = ""  # a unified diff, which is looked at instead of the work tree
    depth: int = DEFAULT_DEPTH  # calls between a caller and the change, 1 to MAX_DEPTH
    limit: int = DEFAULT_LIMIT
    cursor: Any = None  # of the page before
    areas: tuple[Area, ...] = ()  # files must be in one of them

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "ImpactQuery":
        """Check `{repository, base?, patch?, depth?, limit?, cursor?}`. Unknown keys are ignored.
        Raises InvalidInput with all problems."""
        problems: list[str] = []
        if problem := text_problem("repository", data.get("repository")):
            problems.append(problem)
        longest = {"repository": MAX_ID, "base": MAX_NAME, "patch": MAX_PATCH}
        texts = {name: optional_text(data, name, most, problems) for name, most in longest.items()}
        if texts["base"] and texts["patch"]:
            problems.append("base and patch exclude each other")
        depth = parse_limit(data.get("depth"), DEFAULT_DEPTH, MAX_DEPTH, problems, name="depth")
        limit = parse_limit(data.get("limit"), DEFAULT_LIMIT, MAX_LIMIT, problems)
        refuse(problems)
        return cls(
            texts["repository"].strip(),
            texts["base"].strip() or DEFAULT_BASE,
            texts["patch"],
            depth,
            limit,
            data.get("cursor"),
            areas_of(data),
        )

    def as_log(self) -> dict[str, Any]:
        """Scope and size for the log. The patch is private and left out."""
        fields = log_fields((self.repository,), self.limit, Filters())
        return {**fields, "depth": self.depth, "patch": bool(self.patch)}
