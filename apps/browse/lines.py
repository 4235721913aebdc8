"""Labels and links of lines of a file, for pages."""

from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

CODE_URL = "/code"
# The viewer's body for the pane beside an answer.
FRAGMENT_URL = "/ui/retrieval/source"


def code_url(repo: str, path: str = "") -> str:
    """The URL of a repository (`repo` is its id), or of a folder or file in it."""
    if repo in (".", ".."):
        # Browsers resolve these, percent-encoded too.
        query = {"repo": repo, "path": path} if path else {"repo": repo}
        return f"{CODE_URL}?{urlencode(query)}"
    return "/".join((CODE_URL, quote(repo, safe=""), *([quote(path)] if path else ())))


def source_url(repo: str, path: str, start: int | None, end: int | None, **more: int | str) -> str:
    """The permalink of lines `start` to `end` (1-based, both included; None: no lines). `more` are
    further parameters; empty ones are left out."""
    query: dict[str, int | str] = {}
    if start is not None:
        query["lines"] = start if end in (None, start) else f"{start}-{end}"
    query |= {key: value for key, value in more.items() if value}
    url = code_url(repo, path)
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}" if query else url


def fragment_url(
    repo: str, path: str, start: int | None, end: int | None, **more: int | str
) -> str:
    """The same lines as a fragment for the pane beside an answer."""
    query: dict[str, int | str] = {"repo": repo, "path": path}
    if start is not None:
        query |= {"start": start, "end": start if end is None else end}
    query |= {key: value for key, value in more.items() if value}
    return f"{FRAGMENT_URL}?{urlencode(query)}"


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
    # Parameters of the URL that say what led to these lines (`apps.browse.finds`).
    finding: dict[str, str] = field(default_factory=dict, kw_only=True)
    cell: str = field(default="", kw_only=True)  # `cell 7, lines 3–9` of a notebook

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
    def shown_span(self) -> str:
        """The lines behind the name of the file: `:371–377`, or ` cell 7, lines 3–9`."""
        return f" {self.cell}" if self.cell else f":{self.span}" if self.span else ""

    @property
    def citation(self) -> str:
        """The text of "Copy path and lines": `repo/path:start-end`."""
        path, span = f"{self.repo}/{self.path}", self.span
        return f"{path}:{span.replace('–', '-')}" if span else path

    @property
    def url(self) -> str:
        """The URL of the file in the code browser, scrolled to these lines."""
        anchor = f"#L{self.start}" if self.start else ""
        return f"{source_url(self.repo, self.path, self.start, self.end, **self.finding)}{anchor}"

    @property
    def fragment(self) -> str:
        """The URL of the same lines for the pane beside an answer."""
        return fragment_url(self.repo, self.path, self.start, self.end, **self.finding)
