"""Find the lines that a stack trace names."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import re2

from apps.code.callgraph.facts import MODULE
from apps.lookup.deadline import Deadline
from apps.lookup.relations.types import Relation, Relations, Scope, one_line
from apps.lookup.symbols.call_types import Certainty
from apps.lookup.symbols.project import RootProject

# Characters of a trace that are read, frames of it, and folders of a path that are compared.
MAX_CHARS, MAX_FRAMES, MAX_FOLDERS = 10_000, 30, 12
_LANGUAGES = (
    # Python: the line of the file is below.
    r'File "(?P<path>[^"\n]+)", line (?P<line>\d{1,7})(?:, in (?P<name>[\w.<>]+))?',
    # JavaScript and TypeScript
    r"at (?:(?:async |new )*(?P<name>[^\s()]+) (?:\[as [^\]\n]+\] )?)?\(?(?:file://|webpack://)?"
    r"(?P<path>[^\s():]*[^\s():\d][^\s():]*\.(?:[cm]?[jt]sx?|vue|svelte)):(?P<line>\d{1,7}):\d{1,7}\)?",
    # Java, Kotlin, Scala: the folders are in the name of the class.
    r"at (?P<owner>(?:[\w$]+[./])*)(?P<name>[\w$<>]+)\((?P<path>[\w$-]+\.(?:java|kt|scala|groovy)):"
    r"(?P<line>\d{1,7})\)",
    # C#
    r"at (?P<name>[^\s(]+)\([^)\n]*\) in (?P<path>[^\n]+):line (?P<line>\d{1,7})",
    # Go
    r"(?P<path>\S+\.go):(?P<line>\d{1,7})(?: \+0x[0-9a-f]+)?",
    # Rust
    r"(?:at |panicked at )(?P<path>\S+\.rs):(?P<line>\d{1,7}):\d{1,7}",
)
_FRAMES = tuple(re2.compile(rf"^\s*(?:thread '[^'\n]*' )?{text}") for text in _LANGUAGES)
# Languages whose last line has the message, and whose innermost frame is the last one.
_INNERMOST_LAST = (0,)
_HEAD = re.compile(
    r"Traceback \(most recent|goroutine \d|stack backtrace:|note: |\.\.\. \d|\[signal "
)


class Frame(NamedTuple):
    """A line of a file in a stack trace."""

    path: str  # as it is written, or the folders of a class
    line: int
    name: str  # of the function; "" if it is unknown
    text: str  # of the line; "" if it is unknown


class Trace(NamedTuple):
    """A stack trace."""

    frames: tuple[Frame, ...]  # innermost first
    message: str  # of the error; "" if there is none

    @property
    def subject(self) -> str:
        """What to search passages for: the message, else the names of the functions."""
        return self.message or " ".join(frame.name for frame in self.frames[:5] if frame.name)


def read_trace(text: str) -> Trace | None:
    """The stack trace in a text; None if it has no two frames, or one frame and a message."""
    lines = text[:MAX_CHARS].splitlines()
    found: list[tuple[int, int, Frame]] = []  # language, number of the line, frame
    for number, line in enumerate(lines):
        for language, pattern in enumerate(_FRAMES):
            if match := pattern.match(line):
                found.append((language, number, _frame(match.groupdict(), lines, number)))
                break
    if not found:
        return None
    is_last = found[0][0] in _INNERMOST_LAST
    message = _message(lines, {number for _, number, _ in found}, is_last=is_last)
    if len(found) < 2 and (not message or len(lines) < 2):
        return None
    frames = [frame for _, _, frame in found][:: -1 if is_last else 1]
    return Trace(tuple(frames[:MAX_FRAMES]), message)


def _frame(groups: dict[str, str | None], lines: Sequence[str], number: int) -> Frame:
    path, name = groups["path"] or "", groups.get("name") or ""
    if owner := groups.get("owner"):
        *packages, _ = owner.rstrip("./").split(".") if "." in owner else [owner.rstrip("./")]
        path = "/".join([*packages, path])
    below = lines[number + 1] if number + 1 < len(lines) else ""
    is_python = lines[number].lstrip().startswith("File ")
    text = below.strip() if is_python and not below.lstrip().startswith("File ") else ""
    return Frame(path.replace("\\", "/"), int(groups["line"] or 0), name, text)


def _message(lines: Sequence[str], frames: set[int], *, is_last: bool) -> str:
    """The line with the message: behind the frames in Python, otherwise before them, or behind the
    first line of Rust's panic."""
    if is_last:
        behind = [line for line in lines[max(frames) + 1 :] if line[:1].strip()]
        return behind[0].strip() if behind else ""
    first = min(frames)
    plain = [
        line.strip() for line in lines[:first] if line.strip() and not _HEAD.match(line.strip())
    ]
    if plain:
        return plain[0]
    below = lines[first + 1].strip() if first + 1 < len(lines) and first + 1 not in frames else ""
    return "" if _HEAD.match(below) else below


def frames_of(scope: Scope, frames: Sequence[Frame], deadline: Deadline) -> Relations:
    """The lines of the frames that are in files of the scope, innermost first. Proven if the line
    has the text, or is in the function, that the trace names.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    number_of: dict[Relation, int] = {}

    def in_root(project: RootProject, scope: Scope) -> Iterator[Relation]:
        visible = scope.paths(project.root)
        placed = [
            (number, frame, path)
            for number, frame in enumerate(frames)
            if (path := _path_of(project, frame.path)) in visible
        ]
        project.read({path for _, _, path in placed})
        lines = project.lines_of({path for _, _, path in placed})
        for number, frame, path in placed:
            if row := _row(project, frame, path, lines.get(path, ())):
                number_of.setdefault(row, number)
                yield row

    rows = sorted(dict.fromkeys(scope.collect(deadline, in_root)), key=number_of.__getitem__)
    return Relations(tuple(rows[: scope.limit]))


def _path_of(project: RootProject, written: str) -> str:
    """The file whose path ends with most folders of a written path; "" if none has its name, or
    several have the same folders."""
    parts = [part for part in written.split("/") if part not in ("", ".", "..")]
    for count in range(min(len(parts), MAX_FOLDERS), 0, -1):
        files = project.tree.ending("/".join(parts[-count:]))
        if files and (count > 1 or len(parts) == 1 or len(files) == 1):
            return files[0] if count > 1 or len(files) == 1 else ""
    return ""


def _row(project: RootProject, frame: Frame, path: str, lines: Sequence[str]) -> Relation | None:
    facts = project.known(path)
    at, certainty = _line_of(frame, lines)
    if not 0 < at <= len(lines):
        return None
    index, symbol = facts.around(at - 1), ""
    if index != MODULE:
        symbol = facts.definitions[index].path
        if facts.definitions[index].name == re.split(r"[.:$]", frame.name)[-1]:
            certainty = "proven"
    text = one_line(lines[at - 1])
    return Relation("frame", project.place(path), at, text, symbol, frame.name, certainty)


def _line_of(frame: Frame, lines: Sequence[str]) -> tuple[int, Certainty]:
    """The line of a frame: the nearest one with its text, if the file has changed since."""
    if not frame.text:
        return frame.line, "possible"
    same = [number for number, line in enumerate(lines, 1) if line.strip() == frame.text]
    if not same:
        return frame.line, "possible"
    return min(same, key=lambda number: abs(number - frame.line)), "proven"
