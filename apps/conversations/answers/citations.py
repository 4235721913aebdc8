"""Citations: references in an answer's text, resolved against the results of its tools.

A model refers to code as `repo/path:12-30`. A reference is a citation only if it overlaps a passage
that a tool returned earlier in the same turn. Citations are numbered in order of first use. The
numbers derive from the stored parts alone, so a reload gives the same ones.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from apps.retrieval.compact_texts import described
from apps.retrieval.lines import fragment_url, source_url

# Limit per answer; further references stay text.
MAX_REFERENCES = 2_000
# Limit per answer of matches in its list that it does not cite. Its tool calls show all.
MAX_UNCITED = 50
# Unicode whitespace: in RE2 `\s` is ASCII only, and models write thin spaces.
SPACE = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_LINES = rf":L?(?P<start>\d{{1,7}})(?:[{SPACE}]?[-–][{SPACE}]?L?(?P<end>\d{{1,7}}))?"
# In running text a path ends at the first blank or bracket; inside backticks it may hold anything.
# The lines are found first, and the path is what stands before them: a search for paths would look
# through a long word anew at each of its letters.
_CITED_LINES = re.compile(r"(?<=\w)" + _LINES + r"(?![\w:])")
_PATH_BACKWARDS = re.compile(r"[\w./@+-]+")
ANY_REFERENCE = r"(?P<path>[^\n]+?)" + _LINES
WHOLE_REFERENCE = re.compile(rf"\A{ANY_REFERENCE}\Z")


@dataclass(frozen=True)
class Passage:
    """Lines of one file that a tool returned.

    start, end: 1-based, inclusive; None if unknown.
    text: the lines; "" if they are unknown.
    distance: of a search result; lower is better.
    host_path: path on the host, if known; host_path_warning: why it may be wrong.
    model: the embedding model of a search result.
    kind: kind of a symbol (`class`, `reference`), `match`, `lines`, `file` or `folder`; "" for a
    search result.
    """

    repo: str
    path: str
    start: int | None
    end: int | None
    text: str
    distance: float | None
    language: str = ""
    host_path: str = ""
    host_path_warning: str = ""
    model: str = ""
    kind: str = ""
    is_weak: bool = False  # a search result that did not pass the cutoff

    @property
    def is_entry(self) -> bool:
        """A whole file or folder, of which `text` says something."""
        return self.kind in ("file", "folder")

    @property
    def full_path(self) -> str:
        return f"{self.repo}/{self.path}"

    @property
    def directory(self) -> str:
        return self.full_path.rpartition("/")[0] + "/"

    @property
    def name(self) -> str:
        return self.full_path.rpartition("/")[2]

    @property
    def lines(self) -> str:
        return line_range(self.start, self.end)

    @property
    def url(self) -> str:
        return source_url(self.repo, self.path, self.start, self.end)

    @property
    def fragment(self) -> str:
        """The URL of the pane's content."""
        return fragment_url(self.repo, self.path, self.start, self.end)

    def overlap(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and last line shared with start..end; None if there are none."""
        if self.start is None or self.end is None:
            return None
        first, last = max(self.start, start), min(self.end, end)
        return (first, last) if first <= last else None


@dataclass(frozen=True)
class Reference:
    """`path:first-last` in running text.

    first, last: line numbers; last is None for a single line.
    begin, end: offsets in the text, in characters.
    """

    path: str
    first: int
    last: int | None
    begin: int
    end: int


def references(text: str) -> Iterator[Reference]:
    """The references in running text, in order; linear in its length."""
    colon = end = 0
    for lines in _CITED_LINES.finditer(text):
        stop = lines.start()
        # No path holds a colon, so no letter is looked at twice.
        path = _PATH_BACKWARDS.match(text[colon:stop][::-1])
        begin = stop - path.end() if path else stop
        if begin < end:
            # What directly follows a reference is no path, but for what a plus sign sets apart.
            begin = text.find("+", end, stop) + 1 or stop
        colon = stop + 1
        if begin < stop:
            last = int(lines["end"]) if lines["end"] else None
            yield Reference(text[begin:stop], int(lines["start"]), last, begin, lines.end())
            end = lines.end()


@dataclass(frozen=True)
class Citation:
    """A numbered reference: the cited lines of a passage."""

    number: int
    passage: Passage
    start: int
    end: int

    @property
    def lines(self) -> str:
        return line_range(self.start, self.end)

    @property
    def url(self) -> str:
        return source_url(self.passage.repo, self.passage.path, self.start, self.end)

    @property
    def fragment(self) -> str:
        """The URL of the pane's content."""
        return fragment_url(self.passage.repo, self.passage.path, self.start, self.end)

    @property
    def tab(self) -> str:
        return f"{self.passage.name}:{self.start}"

    @property
    def label(self) -> str:
        """The accessible name of the chip."""
        word = "line" if self.start == self.end else "lines"
        return f"Source {self.number}: {self.passage.name} {word} {self.lines.replace('–', ' to ')}"

    @property
    def text(self) -> str:
        """The cited lines themselves."""
        first = self.start - (self.passage.start or self.start)
        return "\n".join(self.passage.text.split("\n")[first : first + self.end - self.start + 1])


class Source(NamedTuple):
    """A row of the list below an answer. number: None if the answer does not cite it."""

    number: int | None
    passage: Passage
    lines: str
    url: str
    fragment: str
    text: str


@dataclass
class Citations:
    """The citations of one answer: `learn` the passages of its tools, then `cite` references.

    used: the citations so far, in order of their numbers.
    """

    used: list[Citation] = field(default_factory=list)
    _by_file: dict[tuple[str, str], list[Passage]] = field(default_factory=dict)
    _by_full_path: dict[str, list[Passage]] = field(default_factory=dict)
    _repos_of: dict[str, set[str]] = field(default_factory=dict)
    _by_lines: dict[tuple[str, str, int, int], Citation] = field(default_factory=dict)
    _number_of: dict[Passage, int] = field(default_factory=dict)
    _matches: dict[tuple[Any, ...], Passage] = field(default_factory=dict)
    _references: int = 0

    def learn(self, passages: Iterable[Passage]) -> None:
        for passage in passages:
            known = self._by_file.setdefault((passage.repo, passage.path), [])
            known.append(passage)
            self._by_full_path.setdefault(passage.full_path, known)
            self._repos_of.setdefault(passage.path, set()).add(passage.repo)
            if not passage.kind:
                self._matches.setdefault(_content(passage), passage)

    def copy(self) -> "Citations":
        """Citations that number on from here and leave these alone; what was learned is shared."""
        return replace(
            self,
            used=list(self.used),
            _by_lines=dict(self._by_lines),
            _number_of=dict(self._number_of),
        )

    def sources(self) -> list[Source]:
        """The citations, then the other search results, each text once."""
        cited = {_content(citation.passage) for citation in self.used}
        others = [passage for key, passage in self._matches.items() if key not in cited]
        return [
            Source(c.number, c.passage, c.lines, c.url, c.fragment, c.text) for c in self.used
        ] + [
            Source(None, passage, passage.lines, passage.url, passage.fragment, passage.text)
            for passage in others[:MAX_UNCITED]
        ]

    def cite(self, path: str, start: int, end: int | None) -> Citation | None:
        """The citation of `path` (with or without its repository); None if no passage overlaps.

        The lines are cut to those of the passage with the largest overlap. Also None after
        MAX_REFERENCES.
        """
        passages = self._passages(path)
        if not passages or self._references >= MAX_REFERENCES:
            return None
        self._references += 1
        end = start if end is None else end
        shared = [
            (passage, lines)
            for passage in passages
            if (lines := passage.overlap(start, max(start, end)))
        ]
        if not shared:
            return None
        passage, lines = max(shared, key=lambda pair: pair[1][1] - pair[1][0])
        return self._numbered(passage, *lines)

    def number_of(self, passage: Passage) -> int | None:
        """The first number of a citation of this passage, if any."""
        return self._number_of.get(passage)

    def _passages(self, path: str) -> list[Passage]:
        path = path.strip().removeprefix("./")
        if path in self._by_full_path:
            return self._by_full_path[path]
        # Without a repository, the path must be unique.
        repos = self._repos_of.get(path, set())
        return self._by_file[(next(iter(repos)), path)] if len(repos) == 1 else []

    def _numbered(self, passage: Passage, start: int, end: int) -> Citation:
        key = (passage.repo, passage.path, start, end)
        if key not in self._by_lines:
            citation = Citation(len(self.used) + 1, passage, start, end)
            self._by_lines[key] = citation
            self._number_of.setdefault(passage, citation.number)
            self.used.append(citation)
        return self._by_lines[key]


def _content(passage: Passage) -> tuple[Any, ...]:
    """What makes two search results the same: their distance depends on the query."""
    return passage.repo, passage.path, passage.start, passage.end, passage.text


def line_range(start: int | None, end: int | None) -> str:
    """ "371–377", "246", or "—" where the lines are not known."""
    if start is None:
        return "—"
    return str(start) if end is None or end == start else f"{start}–{end}"


def passages_of(result: Any) -> list[Passage]:
    """The passages in a tool's result; entries without repository or path are left out."""
    if not isinstance(result, Mapping):
        return []
    rows = result.get("results", _outline_rows(result))
    if not isinstance(rows, list):
        return []
    return [passage for row in rows if (passage := _passage(row)) is not None]


def _outline_rows(result: Mapping[str, Any]) -> list[Any]:
    """The symbols of an outline as rows. Only the first line of each symbol is known."""
    rows: list[Any] = []
    waiting = list(reversed(result.get("symbols") or []))
    while waiting:
        symbol = waiting.pop()
        if not isinstance(symbol, Mapping):
            continue
        line, text = symbol.get("startLine"), symbol.get("signature") or symbol.get("name")
        rows.append({**result, **symbol, "endLine": line, "chunk": text})
        waiting.extend(reversed(symbol.get("children") or []))
    return rows


def _passage(row: Any) -> Passage | None:
    if not isinstance(row, Mapping):
        return None
    repo, path, chunk = row.get("repo"), row.get("relPath"), row.get("chunk")
    if not (isinstance(repo, str) and isinstance(path, str) and repo and path):
        return None
    score = row.get("score")
    return Passage(
        repo=repo,
        path=path,
        start=_line(row.get("startLine")),
        end=_line(row.get("endLine")),
        text=chunk if isinstance(chunk, str) else _described(row),
        distance=float(score) if isinstance(score, int | float) else None,
        language=str(row.get("language") or ""),
        host_path=str(row.get("hostPath") or ""),
        host_path_warning=str(row.get("hostPathWarning") or ""),
        model=str(row.get("modelId") or ""),
        kind=str(row.get("kind") or ""),
        is_weak=row.get("weak") is True,
    )


def _described(row: Mapping[str, Any]) -> str:
    """What a row without text says of its file: size and language, or a count of lines."""
    if isinstance(row.get("size"), int):
        try:
            return described(row)
        except (KeyError, TypeError):
            return ""  # from another program
    count = row.get("count")
    return f"{count:,} line{'' if count == 1 else 's'}" if isinstance(count, int) else ""


def _line(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
