"""What a request for a file says: which lines are cited, and what led to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.browse.finds import Find
from apps.browse.lines import source_url
from apps.core.errors import InvalidInput
from apps.retrieval.query import refuse

SOURCE = "source"  # the value of `view` for the text of a notebook or of Markdown


@dataclass(frozen=True)
class SourceRequest:
    """A file and its cited lines."""

    repo: str  # repository id
    path: str  # within the repository
    start: int | None = None  # first cited line, 1-based; None: no lines
    end: int | None = None  # last cited line, included
    around: int | None = None  # line of the window in a long file, instead of the cited lines
    cell: int | None = None  # cited cell of a notebook; 1-based
    as_source: bool = False  # the file itself, not the cells of a notebook or rendered Markdown
    find: Find = field(default_factory=Find)  # what led the reader here

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "SourceRequest":
        """Check `repo, path, start?, end?, around?, find?, how?`; `lines` (`12-40`) stands for
        start and end. Raises InvalidInput with all problems."""
        problems = [f"{name} is required" for name in ("repo", "path") if not data.get(name)]
        if "\0" in data.get("path", ""):
            problems.append("path must not hold a NUL")
        numbers: dict[str, int | None] = {}
        first, _, last = str(data.get("lines") or "").partition("-")
        given = {**data, **({"start": first, "end": last} if first else {})}
        for name in ("start", "end", "around", "cell"):
            try:
                numbers[name] = _line(given.get(name))
            except ValueError:
                problems.append(f"{name} must be a line number")
        refuse(problems)
        start, end = numbers["start"], numbers["end"]
        if start and end and end < start:
            raise InvalidInput("end must not be before start")
        is_source, find = data.get("view") == SOURCE, Find.read(data)
        place = numbers["around"], numbers["cell"]
        return cls(data["repo"], data["path"], start, end or start, *place, is_source, find)

    @property
    def is_whole(self) -> bool:
        """Whether no line is asked for, and the file need not be shown by lines."""
        return not (self.start or self.around or self.find.text or self.as_source)

    @property
    def url(self) -> str:
        """The permalink of these lines."""
        more: dict[str, int | str] = {
            "around": self.around or 0,
            "cell": self.cell or 0,
            "view": SOURCE if self.as_source else "",
            **self.find.params,
        }
        return source_url(self.repo, self.path, self.start, self.end, **more)


def _line(value: Any) -> int | None:
    number = int(value) if value else None
    if number is not None and number < 1:
        raise ValueError
    return number
