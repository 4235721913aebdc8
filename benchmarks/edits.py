"""Edits of files whose effect on some cited lines is known by construction."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Lines = list[str]
# Lines around a passage that move with it, so that its surroundings do.
MARGIN = 8


@dataclass
class Edited:
    """A file after an edit.

    lines: None if there is no file any more
    start: the first line of the passage, 1-based; None if it was altered or lost
    path: new path, if the file was renamed
    """

    lines: Lines | None
    start: int | None
    path: str = ""
    kind: str = ""


@dataclass
class Case:
    """A passage, lines `start` to `end`, 1-based, both included."""

    path: str
    lines: Lines
    start: int
    end: int
    other: Lines = field(default_factory=list)  # text to insert, of another file

    @property
    def passage(self) -> Lines:
        return self.lines[self.start - 1 : self.end]


def _away(rng: random.Random, case: Case) -> int:
    """An index at which lines may be inserted without touching the passage; often beside it."""
    beside = [case.start - 1, case.end]
    if rng.random() < 0.3:
        return int(rng.choice(beside))
    places: list[int] = [*range(case.start), *range(case.end, len(case.lines) + 1)]
    return int(rng.choice(places))


def _some(rng: random.Random, case: Case) -> Lines:
    size = rng.choice([1, 1, 2, 3, 5, 10, 30])
    at = rng.randrange(max(1, len(case.other) - size))
    return case.other[at : at + size] or ["new line"]


def insert(rng: random.Random, case: Case) -> Edited:
    at, new = _away(rng, case), _some(rng, case)
    lines = [*case.lines[:at], *new, *case.lines[at:]]
    return Edited(lines, case.start + (len(new) if at < case.start else 0))


def insert_inside(rng: random.Random, case: Case) -> Edited:
    told = [n for n in range(case.start - 1, case.end) if case.lines[n].strip()]
    if len(told) == 1:
        return rewrite(rng, case)
    at = rng.randrange(told[0] + 1, told[-1] + 1)
    return Edited([*case.lines[:at], "    something_new()", *case.lines[at:]], None)


def delete(rng: random.Random, case: Case) -> Edited:
    size = rng.choice([1, 1, 2, 5, 20])
    before = rng.random() < 0.5
    if before:
        first = rng.randrange(case.start)
        last = min(first + size, case.start - 1)
    else:
        first = rng.randrange(case.end, len(case.lines) + 1)
        last = min(first + size, len(case.lines))
    lines = [*case.lines[:first], *case.lines[last:]]
    return Edited(lines, case.start - (last - first if before else 0))


def delete_part(rng: random.Random, case: Case) -> Edited:
    told = [n for n in range(case.start - 1, case.end) if case.lines[n].strip()]
    gone = rng.choice(told)
    return Edited([*case.lines[:gone], *case.lines[gone + 1 :]], None)


def delete_all(rng: random.Random, case: Case) -> Edited:
    return Edited([*case.lines[: case.start - 1], *case.lines[case.end :]], None)


def delete_file(rng: random.Random, case: Case) -> Edited:
    return Edited(None, None)


def _block(rng: random.Random, case: Case) -> tuple[int, int]:
    margin = MARGIN + rng.randrange(8)
    return max(0, case.start - 1 - margin), min(len(case.lines), case.end + margin)


def move(rng: random.Random, case: Case) -> Edited:
    first, last = _block(rng, case)
    block, rest = case.lines[first:last], [*case.lines[:first], *case.lines[last:]]
    at = rng.randrange(len(rest) + 1)
    return Edited([*rest[:at], *block, *rest[at:]], at + case.start - first)


def move_another(rng: random.Random, case: Case) -> Edited:
    size = rng.randrange(1, 30)
    if rng.random() < 0.5 and case.start > 1:
        first = rng.randrange(case.start - 1)
        last = min(first + size, case.start - 1)
        block, rest = case.lines[first:last], [*case.lines[:first], *case.lines[last:]]
        at = rng.randrange(case.end - len(block), len(rest) + 1)
        return Edited([*rest[:at], *block, *rest[at:]], case.start - len(block))
    first = rng.randrange(case.end, len(case.lines) + 1)
    block, rest = (
        case.lines[first : first + size],
        [*case.lines[:first], *case.lines[first + size :]],
    )
    at = rng.randrange(case.start)
    return Edited([*rest[:at], *block, *rest[at:]], case.start + len(block))


def rename(rng: random.Random, case: Case) -> Edited:
    folder, _, name = case.path.rpartition("/")
    new = rng.choice([f"{folder}/renamed_{name}", f"elsewhere/{name}", f"elsewhere/new_{name}"])
    edited = insert(rng, case) if rng.random() < 0.5 else Edited(list(case.lines), case.start)
    edited.path = new.strip("/")
    return edited


def rename_and_rewrite(rng: random.Random, case: Case) -> Edited:
    edited = rewrite(rng, case)
    edited.path = f"elsewhere/{case.path.rpartition('/')[2]}"
    return edited


def reindent(rng: random.Random, case: Case) -> Edited:
    first, last = _block(rng, case) if rng.random() < 0.5 else (case.start - 1, case.end)
    margin = rng.choice(["    ", "\t", "  "])
    lines = list(case.lines)
    lines[first:last] = [margin + line if line.strip() else line for line in lines[first:last]]
    return Edited(lines, case.start)


def endings(rng: random.Random, case: Case) -> Edited:
    end = rng.choice(["\r", "  ", "\t"])
    return Edited([line + end for line in case.lines], case.start)


def rewrite(rng: random.Random, case: Case) -> Edited:
    """Some lines of the passage are altered, from one word in one line to all lines."""
    lines = list(case.lines)
    told = [n for n in range(case.start - 1, case.end) if lines[n].strip()]
    for n in rng.sample(told, rng.choice([1, 1, max(1, len(told) // 2), len(told)])):
        words = list(re.finditer(r"\w+", lines[n]))
        if words:
            word = rng.choice(words)
            lines[n] = (
                f"{lines[n][: word.start()]}{word[0]}_x{rng.randrange(99)}{lines[n][word.end() :]}"
            )
        else:
            lines[n] += "  // altered"
    return Edited(lines, None)


def rewrite_another(rng: random.Random, case: Case) -> Edited:
    lines = list(case.lines)
    others = [n for n in (*range(case.start - 1), *range(case.end, len(lines))) if lines[n].strip()]
    near = sorted(others, key=lambda n: abs(n - case.start))[:60]
    for n in rng.sample(near, min(len(near), rng.choice([1, 2, 3]))):
        lines[n] += " // altered"
    return Edited(lines, case.start)


def swap(rng: random.Random, case: Case) -> Edited:
    lines = list(case.lines)
    pairs = [
        n
        for n in range(case.start - 1, case.end - 1)
        if lines[n].strip() != lines[n + 1].strip() and lines[n].strip() and lines[n + 1].strip()
    ]
    if not pairs:
        return rewrite(rng, case)
    n = rng.choice(pairs)
    lines[n], lines[n + 1] = lines[n + 1], lines[n]
    return Edited(lines, None)


def copy_and_alter(rng: random.Random, case: Case) -> Edited:
    """The passage is copied elsewhere with what is around it, then the cited one is altered."""
    first, last = _block(rng, case) if rng.random() < 0.5 else (case.start - 1, case.end)
    block = case.lines[first:last]
    altered = rewrite(rng, case).lines or []
    # Right beside it, which of both is the copy cannot be told.
    places = [*range(first - MARGIN), *range(last + MARGIN, len(case.lines) + 1)]
    if not places:
        return Edited(altered, None)
    at = rng.choice(places)
    return Edited([*altered[:at], *block, *altered[at:]], None)


Edit = Callable[[random.Random, Case], Edited]
EDITS: dict[str, Sequence[Edit]] = {
    "insert": (insert, insert, insert_inside),
    "delete": (delete, delete, delete_part, delete_all, delete_file),
    "move": (move, move, move_another, copy_and_alter),
    "rename": (rename, rename, rename_and_rewrite),
    "re-indent": (reindent, reindent, endings),
    "rewrite": (rewrite, rewrite, rewrite_another, swap),
}
