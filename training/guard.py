"""Exclude pairs that resemble the packages of an evaluation: copies, forks, old versions.

The long lines of code and the questions of these packages are stored as 32-bit checksums. A pair is
excluded if two fifths of its long lines or its question are among them.
"""

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from apps.code.chunking import decode, lines_of
from apps.code.languages import language_of
from training.archives import files
from training.extract import LANGUAGES, Pair, pairs_in

SHORTEST_LINE = 28
SHARED = 0.4
FEWEST_SHARED = 2
_COMMENT = ("*", "//", "#", "/*", "--", "import ", "from ", "use ", "using ", "package ")


@dataclass(frozen=True)
class Guard:
    """Checksums of lines and questions that must not be trained on."""

    lines: frozenset[int]
    questions: frozenset[int]

    @classmethod
    def of(cls, archives: Iterable[Path]) -> Self:
        lines: set[int] = set()
        questions: set[int] = set()
        for archive in archives:
            for path, content in files(archive):
                if language_of(path, content[:200]).name in LANGUAGES:
                    lines.update(_sums(lines_of(decode(content))))
                    questions.update(_question(pair) for pair in pairs_in(path, content))
        return cls(frozenset(lines), frozenset(questions))

    @classmethod
    def load(cls, path: Path) -> Self:
        with np.load(path) as stored:
            return cls(frozenset(stored["lines"].tolist()), frozenset(stored["questions"].tolist()))

    def save(self, path: Path) -> None:
        np.savez(
            path,
            lines=np.array(sorted(self.lines), np.uint32),
            questions=np.array(sorted(self.questions), np.uint32),
        )

    def forbids(self, pair: Pair) -> bool:
        if _question(pair) in self.questions:
            return True
        sums = _sums(pair.body.split("\n"))
        shared = sum(each in self.lines for each in sums)
        return shared >= FEWEST_SHARED and shared >= SHARED * len(sums)


def _sums(lines: Iterable[str]) -> list[int]:
    stripped = (line.strip() for line in lines)
    return [
        zlib.crc32(line.encode("utf-8", "replace"))
        for line in stripped
        if len(line) >= SHORTEST_LINE and not line.startswith(_COMMENT)
    ]


def _question(pair: Pair) -> int:
    return zlib.crc32(re.sub(r"\W+", " ", pair.question.lower()).strip().encode())
