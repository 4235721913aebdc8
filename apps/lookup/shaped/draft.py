"""An answer in the making, and the definitions that most answers begin with."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from apps.lookup.deadline import Deadline
from apps.lookup.ingested import ingested_lines
from apps.lookup.relations.types import Relation, Relations, Role, Scope
from apps.lookup.shapes import Question
from apps.lookup.symbols.definitions import MINOR, Hit, matching
from apps.lookup.symbols.types import SEPARATORS, Place

# Rows of an answer, and definitions at its beginning.
MAX_ROWS, MAX_DEFINITIONS = 24, 3
# Lines at the beginning of a definition.
DEFINITION_LINES = 8
MORE_DEFINITIONS = "{} has {} definitions. Name one, as in Class.method."


@dataclass
class Draft:
    """An answer in the making."""

    question: Question
    scope: Scope
    deadline: Deadline
    rows: list[Relation] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    subject: str = ""  # if it is not what the question names
    languages: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    left_out: int = 0  # rows without room

    def add(self, rows: Iterable[Relation], most: int = MAX_ROWS) -> None:
        """Add rows whose lines no row has yet. A step may be on the line of a definition."""
        known = {row.spot for row in self.rows}
        fresh = [row for row in rows if row.role == "step" or row.spot not in known]
        self.rows += fresh[:most]
        self.left_out += len(fresh[most:])

    def take(self, found: Relations, most: int = MAX_ROWS) -> None:
        self.add(found.rows, most)
        self.note(found.note)

    def note(self, text: str) -> None:
        self.notes |= {text: None} if text else {}

    def has(self, role: Role) -> bool:
        return any(row.role == role for row in self.rows)

    def define(self, name: str, most: int = MAX_DEFINITIONS) -> list[Hit]:
        """Add the definitions of a name. Returns all of them."""
        hits, _ = matching(self.scope.named(name))
        major = [hit for hit in hits if _is_major(hit)] or hits
        self.add(definitions(major[:most]), most)
        if len(major) > most > 1:
            self.note(MORE_DEFINITIONS.format(name, len(major)))
        return list(hits)


def _is_major(hit: Hit) -> bool:
    """Whether it is a definition, and no constructor with the name of its class."""
    *scopes, name = SEPARATORS.split(hit.symbol.path)
    return hit.symbol.kind not in MINOR and name not in scopes


def definitions(hits: Sequence[Hit]) -> Iterator[Relation]:
    """The first lines of definitions."""
    lines = ingested_lines((hit.root, hit.symbol.source_file) for hit in hits)
    for root, symbol in hits:
        first = symbol.start_line - 1
        last = min(symbol.end_line, first + DEFINITION_LINES)
        text = lines.get(symbol.source_file, [])[first:last] or [symbol.signature]
        place = Place(root, symbol.file_path, symbol.language)
        shown = "\n".join(line[:200] for line in text).rstrip()
        yield Relation("definition", place, symbol.start_line, shown, symbol.path)
