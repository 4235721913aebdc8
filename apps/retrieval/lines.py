"""Labels and links of lines of a file, for pages."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

SOURCE_URL = "/ui/retrieval/source"


def source_url(repo: str, path: str, start: int | None, end: int | None, **more: int) -> str:
    """The URL of the source viewer at lines `start` to `end` (1-based, both included; None: no
    lines). `more` are further parameters."""
    query: dict[str, str | int] = {"repo": repo, "path": path}
    if start is not None:
        query |= {"start": start, "end": start if end is None else end}
    return f"{SOURCE_URL}?{urlencode(query | more)}"


def repository_url(repository: str) -> str:
    """The URL of a repository, by its id, in the code browser."""
    return f"/code/{quote(repository, safe='')}"


def span_of(start: int | None, end: int | None) -> str:
    """`371–377`, `12`, or "" if the lines are unknown."""
    if start is None or end is None:
        return ""
    return str(start) if start == end else f"{start}–{end}"


@dataclass(frozen=True)
class Lines:
    """Lines `start` to `end` of a file, 1-based, both included; None if unknown."""

    repo: str
    path: str
    start: int | None
    end: int | None

    @property
    def folder(self) -> str:
        """Repository and directories, without the file name."""
        path = f"{self.repo}/{self.path}"
        return path[: path.rindex("/") + 1]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def span(self) -> str:
        """`371–377`, `12`, or "" if the lines are unknown."""
        return span_of(self.start, self.end)

    @property
    def citation(self) -> str:
        """The text of "Copy path and lines": `repo/path:start-end`."""
        path, span = f"{self.repo}/{self.path}", self.span
        return f"{path}:{span.replace('–', '-')}" if span else path

    @property
    def url(self) -> str:
        """The URL of the source viewer, scrolled to these lines."""
        anchor = f"#L{self.start}" if self.start else ""
        return f"{source_url(self.repo, self.path, self.start, self.end)}{anchor}"
