"""Citations: references in an answer's text, resolved against the results of its tools.

A model refers to code as `repo/path:12-30`. A reference is a citation only if it overlaps a passage
that a tool returned earlier in the same turn. Citations are numbered in order of first use. The
numbers derive from the stored parts alone, so a reload gives the same ones.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from apps.browse.lines import fragment_url, source_url
from apps.conversations.answers.passages import Passage

# Limit per answer; further references stay text.
MAX_REFERENCES = 2_000
# Limit per answer of characters of the lines that it cites, which may overlap. Citations after it
# have only their place.
MAX_CITED_CHARS = 400_000
# Limit per answer of passages in its list that it does not cite. Its tool calls show all.
MAX_UNCITED = 50
# Of these, search results of one file, over all searches of the answer.
MAX_UNCITED_OF_FILE = 2


@dataclass(frozen=True)
class Citation:
    """A numbered reference: the cited lines of a passage."""

    number: int
    passage: Passage
    start: int
    end: int

    @property
    def lines(self) -> str:
        return self.passage.lines_of(self.start, self.end)

    @cached_property
    def url(self) -> str:
        return source_url(
            self.passage.repo, self.passage.path, self.start, self.end, cell=self.passage.cell
        )

    @cached_property
    def fragment(self) -> str:
        """The URL of the pane's content."""
        return fragment_url(
            self.passage.repo, self.passage.path, self.start, self.end, cell=self.passage.cell
        )

    @property
    def label(self) -> str:
        """The accessible name of the chip."""
        word = "" if self.passage.cell else "line " if self.start == self.end else "lines "
        return f"Source {self.number}: {self.passage.name} {word}{self.lines.replace('–', ' to ')}"

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
            if passage.is_source or not passage.kind:
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
        """The citations, then what else the tools returned, each text once.

        Of the search results of a file the first two are listed. A row of another tool is left out
        if the list has its lines already, as a line of Grep inside a passage that was read.
        """
        cited = {_content(citation.passage) for citation in self.used}
        listed: dict[tuple[str, str], set[tuple[int, int]]] = {}
        for citation in self.used:
            _add_lines(listed, citation.passage)
        others: list[Passage] = []
        of_file: Counter[str] = Counter()
        for key, passage in self._matches.items():
            if len(others) == MAX_UNCITED:
                break
            if key in cited or (passage.kind and _has_lines(listed, passage)):
                continue
            if not passage.kind:
                of_file[passage.full_path] += 1
                if of_file[passage.full_path] > MAX_UNCITED_OF_FILE:
                    continue
            _add_lines(listed, passage)
            others.append(passage)
        return [
            Source(c.number, c.passage, c.lines, c.url, c.fragment, text)
            for c, text in zip(self.used, self.texts(), strict=True)
        ] + [
            Source(None, passage, passage.lines, passage.url, passage.fragment, passage.text)
            for passage in others
        ]

    def texts(self) -> list[str]:
        """The cited lines of each citation; "" if they are unknown, and after MAX_CITED_CHARS."""
        texts: list[str] = []
        chars = 0
        for citation in self.used:
            texts.append(citation.text if chars < MAX_CITED_CHARS else "")
            chars += len(texts[-1])
        return texts

    @property
    def counts(self) -> str:
        """`3 cited · 53 found`: the citations, and all passages that the tools returned."""
        contents = {_content(citation.passage) for citation in self.used} | self._matches.keys()
        return f"{len(self.used)} cited · {len(contents)} found"

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

    def link(self, path: str, line: int) -> tuple[str, str] | None:
        """The URLs of a line of a passage, which get no number: of the page, and of the fragment
        for the pane beside; None if no passage has it."""
        for passage in self._passages(path):
            if passage.overlap(line, line):
                place = passage.repo, passage.path, line, line
                return source_url(*place), fragment_url(*place)
        return None

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


def _add_lines(listed: dict[tuple[str, str], set[tuple[int, int]]], passage: Passage) -> None:
    if passage.start and passage.end:
        lines = listed.setdefault((passage.repo, passage.path), set())
        lines.add((passage.start, passage.end))


def _has_lines(listed: dict[tuple[str, str], set[tuple[int, int]]], passage: Passage) -> bool:
    """Whether one of the passages that are listed has all lines of this one."""
    start, end = passage.start, passage.end
    if not start or not end:
        return False
    spans = listed.get((passage.repo, passage.path), ())
    return any(first <= start and end <= last for first, last in spans)
