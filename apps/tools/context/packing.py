"""Pack pieces into a number of tokens. No line is packed twice."""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from apps.lookup.symbols.types import SEPARATORS
from apps.tools.context.tokens import estimate_quoted
from apps.tools.context.types import LINE_TOKENS, LIST_TOKENS, TEXT_TOKENS, Piece, Role
from apps.tools.snippets import best_start, shared_stems

# Characters of a line that stands for a file. A longer one is cut.
MAX_LINE = 120
# A token of code has fewer characters on average.
MAX_CHARACTERS = 6
# Lines that tell nothing of a file begin with one of these.
DULL = (
    *("from ", "import ", "using ", "use ", "package ", "require", "include", "export * "),
    *("#", "//", "/*", "*", '"""', "--", ";;", "{", "}", "(", ")", "<?php"),
)
# Numbers of lines that a passage may be cut to.
CUTS = (80, 60, 40, 30, 22, 16, 12, 8, 5, 3)

Line = tuple[str, str, int]  # repository, path, line


class Packer:
    """Collects pieces as long as there is room.

    question: long pieces are cut to the lines that have its words
    room: tokens
    shown: lines that the reader has: pieces of nothing else are not packed
    """

    def __init__(self, question: str, room: int, shown: Set[Line] = frozenset()) -> None:
        self.question = question
        self.room = room
        self.pieces: list[Piece] = []
        self._lists: set[Role | str] = set()  # that have an item
        self._lines: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._shown = shown
        self._shown_files = {line[:2] for line in shown}

    def add_whole(self, piece: Piece, most: float) -> bool:
        """Pack a piece if all its lines that are not packed yet fit into `most` tokens."""
        piece, room = self._unpacked(piece), min(most, self.room)
        is_long = len(piece.text) > MAX_CHARACTERS * room  # much faster than its tokens
        if is_long or not piece.text.strip() or piece.tokens > room:
            return False
        self._pack(piece, piece.tokens)
        return True

    def add(self, piece: Piece, most: int) -> bool:
        """Pack a piece, cut to at most `most` tokens. Return False if no part of it fits, or its
        lines are packed already."""
        piece = self._unpacked(piece)
        if self.add_whole(piece, most):
            return True
        lines = piece.text.split("\n")
        if not piece.text.strip():
            return False
        row = replace(piece, is_cut=True).row_tokens
        room = min(most, self.room) - row
        costs = [estimate_quoted(line) + LINE_TOKENS for line in lines]
        cheapest = sorted(costs)
        counts = [cut for cut in CUTS if cut < len(lines) and sum(cheapest[:cut]) <= room]
        shared = shared_stems(lines, self.question) if counts else []
        for count in counts:
            first = best_start(shared, count)
            if (tokens := sum(costs[first : first + count])) <= room:
                text = "\n".join(lines[first : first + count])
                start = piece.start_line + first
                self._pack(replace(piece, start_line=start, text=text, is_cut=True), row + tokens)
                return True
        return False

    def add_line(self, piece: Piece) -> bool:
        """Pack a piece of one line, which is cut to MAX_LINE characters. Return False if it does
        not fit, or is packed already."""
        if piece.start_line in self._lines[piece.place.repo, piece.place.path]:
            return False
        text = piece.text.strip()[:MAX_LINE]
        piece = piece if text == piece.text else replace(piece, text=text)
        tokens = piece.tokens + self._opening(piece.role)
        if not text or self.is_shown(piece) or tokens > self.room:
            return False
        self._pack(piece, tokens)
        self._lists.add(piece.role)
        return True

    def add_name(self, text: str) -> bool:
        """Take the tokens of a text of the list `leftOut`. Return False if there is no room."""
        tokens = estimate_quoted(text) + TEXT_TOKENS + self._opening("leftOut")
        if tokens > self.room:
            return False
        self.room -= tokens
        self._lists.add("leftOut")
        return True

    def _opening(self, name: str) -> int:
        """The tokens of the key of a list, if it has no item yet."""
        return 0 if name in self._lists else LIST_TOKENS

    def has(self, repo: str, path: str) -> bool:
        """Return True if lines of a file are packed or shown."""
        return bool(self._lines.get((repo, path))) or (repo, path) in self._shown_files

    def is_shown(self, piece: Piece) -> bool:
        """Return True if the reader has all lines of a piece."""
        if not self._shown:
            return False
        repo, path = piece.place.repo, piece.place.path
        lines = range(piece.start_line, piece.end_line + 1)
        return all((repo, path, line) in self._shown for line in lines)

    def _unpacked(self, piece: Piece) -> Piece:
        """The longest run of lines of a piece that are not packed yet; none if all are shown."""
        if self.is_shown(piece):
            return replace(piece, text="")
        packed = self._lines[piece.place.repo, piece.place.path]
        if packed.isdisjoint(range(piece.start_line, piece.end_line + 1)):
            return piece
        runs: list[list[str]] = [[]]
        starts = [piece.start_line]
        for number, text in enumerate(piece.text.split("\n"), piece.start_line):
            if number in packed:
                runs.append([])
                starts.append(number + 1)
            else:
                runs[-1].append(text)
        longest = max(range(len(runs)), key=lambda index: len(runs[index]))
        return replace(piece, start_line=starts[longest], text="\n".join(runs[longest]))

    def _pack(self, piece: Piece, tokens: int) -> None:
        self.room -= tokens
        numbers = range(piece.start_line, piece.end_line + 1)
        self._lines[piece.place.repo, piece.place.path].update(numbers)
        self.pieces.append(piece)


def telling_line(lines: Sequence[str], question: str, symbol: str) -> int:
    """The index of the line that tells most about a passage: with words of the question, with the
    name of its definition, or else the first that is more than an import or a comment."""
    shared = shared_stems(lines, question)
    numbers = [len(stems) for stems in shared]
    at = numbers.index(max(numbers))
    if shared[at]:
        return at
    name = SEPARATORS.split(symbol)[-1].strip()
    named = (index for index, line in enumerate(lines) if name and name in line)
    if (index := next(named, None)) is not None:
        return index
    texts = enumerate(map(str.strip, lines))
    return next((index for index, text in texts if text and not text.startswith(DULL)), at)


def in_order(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Passages and definitions in the order they were packed, then callers, tests, mentions."""
    roles = ("caller", "test", "mention")
    return tuple(
        sorted(pieces, key=lambda piece: roles.index(piece.role) if piece.role in roles else -1)
    )
