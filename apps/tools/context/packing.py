"""Pack pieces into a number of tokens. No line is packed twice."""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from apps.core.types import JSON
from apps.lookup.symbols.types import SEPARATORS
from apps.tools.context.form import compact_line
from apps.tools.context.tokens import estimate
from apps.tools.context.types import Piece
from apps.tools.snippets import best_start, shared_stems

# Characters of a line that stands for a file. A longer one is cut.
MAX_LINE = 120
# A token of code has fewer characters on average.
MAX_CHARACTERS = 6
# Tokens beside the text, of a line of a passage and of a text by itself: quotes and a comma.
LINE_TOKENS, TEXT_TOKENS = 1, 2
# Tokens of the keys of a row, and of those that some rows have: `compact_row`.
ROW_TOKENS, SYMBOL_TOKENS, OF_TOKENS, FLAG_TOKENS = 19, 6, 7, 5
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
        self._lines: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._shown = shown
        self._shown_files = {line[:2] for line in shown}

    def add_whole(self, piece: Piece, most: float) -> bool:
        """Pack a piece if all its lines that are not packed yet fit into `most` tokens."""
        piece, room = self._unpacked(piece), min(most, self.room)
        is_long = len(piece.text) > MAX_CHARACTERS * room  # much faster than its tokens
        if is_long or not piece.text.strip() or (tokens := cost(piece)) > room:
            return False
        self._pack(piece, tokens)
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
        row = _row_cost(replace(piece, is_cut=True))
        room = min(most, self.room) - row
        costs = [estimate(line) + LINE_TOKENS for line in lines]
        shared = shared_stems(lines, self.question)
        for count in (cut for cut in CUTS if cut < len(lines)):
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
        piece = replace(piece, text=piece.text.strip()[:MAX_LINE])
        file = piece.place.repo, piece.place.path
        if piece.start_line in self._lines[file] or self.is_shown(piece):
            return False
        if not piece.text or (tokens := cost(piece)) > self.room:
            return False
        self._pack(piece, tokens)
        return True

    def spend(self, text: str) -> bool:
        """Take the tokens of a text that is not a piece. Return False if there is no room."""
        tokens = estimate(text) + TEXT_TOKENS
        if tokens > self.room:
            return False
        self.room -= tokens
        return True

    def has(self, repo: str, path: str) -> bool:
        """Return True if lines of a file are packed or shown."""
        return bool(self._lines.get((repo, path))) or (repo, path) in self._shown_files

    def is_shown(self, piece: Piece) -> bool:
        """Return True if the reader has all lines of a piece."""
        repo, path = piece.place.repo, piece.place.path
        lines = range(piece.start_line, piece.end_line + 1)
        return bool(self._shown) and all((repo, path, line) in self._shown for line in lines)

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


def cost(piece: Piece) -> int:
    """Tokens of a piece in the compact answer."""
    if piece.is_line:
        return estimate(compact_line(_facts(piece))) + TEXT_TOKENS
    # The ends of lines stand for the quotes and commas of a list.
    return _row_cost(piece) + estimate(piece.text) + LINE_TOKENS


def _row_cost(piece: Piece) -> int:
    """Tokens of a row beside its lines."""
    place = piece.place
    facts = f"{place.repo} {place.path} {piece.start_line}-{piece.end_line} {piece.symbol}"
    tokens = ROW_TOKENS + estimate(facts) + FLAG_TOKENS * (piece.is_weak + piece.is_cut)
    tokens += SYMBOL_TOKENS if piece.symbol else 0
    return tokens + (OF_TOKENS + estimate(piece.of) if piece.of else 0)


def _facts(piece: Piece) -> JSON:
    return {
        "repo": piece.place.repo,
        "relPath": piece.place.path,
        "startLine": piece.start_line,
        "endLine": piece.end_line,
        "symbol": piece.symbol,
        "of": piece.of,
        "weak": piece.is_weak,
        "cut": piece.is_cut,
        "chunk": piece.text,
    }


def telling_line(lines: Sequence[str], question: str, symbol: str) -> int:
    """The index of the line that tells most about a passage: with words of the question, with the
    name of its definition, or else the first that is more than an import or a comment."""
    shared = shared_stems(lines, question)
    at = best_start(shared, 1)
    if shared[at]:
        return at
    name = SEPARATORS.split(symbol)[-1].strip()
    texts = [line.strip() for line in lines]
    named = (index for index, text in enumerate(texts) if name and name in text)
    others = (index for index, text in enumerate(texts) if text and not text.startswith(DULL))
    return next(named, next(others, at))


def in_order(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Passages and definitions in the order they were packed, then callers, tests, mentions."""
    roles = ("caller", "test", "mention")
    return tuple(
        sorted(pieces, key=lambda piece: roles.index(piece.role) if piece.role in roles else -1)
    )
