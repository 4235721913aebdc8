"""The lines that Grep shows: cut around their matches, with lines around them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple
from uuid import UUID

from apps.index.models import Root
from apps.lookup.symbols.project import LiveFile
from apps.lookup.symbols.types import Place, filled
from apps.lookup.texts.matching import Answer, LineMatch, numbered

# Characters of a line that are shown, around the match.
MAX_LINE = 300
MAX_SPAN = 20  # lines of a match that spans lines


class FileMatches(NamedTuple):
    """A file in which lines match, and what was found. `data`: its text in UTF-8, if lines are
    shown."""

    root: Root
    file: LiveFile
    data: bytes
    found: Answer

    @property
    def number(self) -> int:
        """How many lines match; 1 for any if it was not asked."""
        return self.found if isinstance(self.found, int) else len(self.found) // 4

    @property
    def matches(self) -> Iterator[LineMatch]:
        numbers = iter(() if isinstance(self.found, int) else self.found)
        return map(LineMatch._make, zip(*[numbers] * 4, strict=True))


@dataclass(frozen=True)
class Hit:
    """A line that matches; several if the match spans lines."""

    place: Place
    source_file: str  # SourceFile.document
    line: int  # 1-based
    end_line: int
    text: str
    before: tuple[str, ...] = ()  # context
    after: tuple[str, ...] = ()
    symbol: str = ""  # path of the definition that contains the line
    defines: bool = False

    @property
    def key(self) -> tuple[UUID, str, int]:
        """The root, the file and the line. Roots may share a document."""
        return self.place.root.id, self.source_file, self.line

    def as_wire(self) -> dict[str, Any]:
        return {
            **self.place.as_wire(),
            "startLine": self.line,
            "endLine": self.end_line,
            "kind": "definition" if self.defines else "match",
            "chunk": self.text,
            **filled(symbol=self.symbol, before=list(self.before), after=list(self.after)),
        }


def hits_of(each: FileMatches, context: int) -> Iterator[Hit]:
    """The lines of one file that match, with `context` lines around each, none twice."""
    place = Place(each.root, each.file.path, each.file.language)
    lines = each.data.split(b"\n") if context else []
    end = len(lines) + 1, LineMatch(0, 0, 0, 0)
    shown = 0  # the last line that an earlier hit has
    matches = numbered(each.matches, each.data)
    for (line, match), (following, _) in pairwise(chain(matches, [end])):
        end_line = line + each.data.count(b"\n", match.start, match.end)
        before: tuple[str, ...] = ()
        after: tuple[str, ...] = ()
        if context:
            before = _shown(lines[max(shown, line - 1 - context) : line - 1])
            last = min(end_line + context, following - 1)
            after = _shown(lines[end_line:last])
            shown = max(end_line, last)
        text = _text(each.data, match)
        yield Hit(place, each.file.document, line, end_line, text, before, after)


def _shown(lines: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(cut_line(line.decode("utf-8", "replace"), 0) for line in lines)


def _text(data: bytes, match: LineMatch) -> str:
    """The lines of a match, long ones cut around it."""
    first, *rest = data[match.start : match.end].decode("utf-8", "replace").split("\n")
    at = len(data[match.start : match.at].decode("utf-8", "replace"))
    lines = [cut_line(first, at), *(cut_line(line, 0) for line in rest[: MAX_SPAN - 1])]
    if len(rest) >= MAX_SPAN:
        lines.append("…")
    return "\n".join(lines)


def cut_line(line: str, at: int) -> str:
    """MAX_LINE characters of a line, from a little before the character `at`."""
    if len(line) <= MAX_LINE:
        return line
    start = max(0, min(at - MAX_LINE // 4, len(line) - MAX_LINE))
    end = start + MAX_LINE
    return f"{'…' * bool(start)}{line[start:end]}{'…' * (end < len(line))}"
