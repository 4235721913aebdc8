"""A search with ripgrep by keyword, as a program would use it.

Each word of the question is searched for, in any case. Files with the most distinct words come
first, ties by the number of hits. Files are then read completely, in that order.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, folder_of
from benchmarks.retrieval.scores import Ask

# Words that nobody would search for.
STOP_WORDS = frozenset(
    """
    a after against all an and any are as at be before between by can do does each for from how if
    in into is it its no not of on or other per than that the their them then this through to used
    using via was what when where which who why will with within without
    """.split()  # noqa: SIM905 - a list of them would fill a page
)
SHORTEST = 3


def system(ripgrep: Path, checkouts: Path) -> Ask:
    def ask(repository: Repository, question: Question) -> Sequence[Place]:
        folder = folder_of(repository, checkouts)
        hits = [_counts(ripgrep, folder, word) for word in keywords(question.text)]
        return [
            Place(repository.path_of(path), chars=len(path) + (folder / path).stat().st_size)
            for path in _ordered(hits)
        ]

    return ask


def keywords(question: str) -> list[str]:
    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", question))
    return [word for word in words if len(word) >= SHORTEST and word.lower() not in STOP_WORDS]


def _counts(ripgrep: Path, folder: Path, word: str) -> dict[str, int]:
    """How often each file holds the word; ripgrep says 1 where none does."""
    command = [str(ripgrep), "--count-matches", "--ignore-case", "--fixed-strings", "--", word, "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode > 1:
        raise RuntimeError(done.stderr)
    lines = (line.removeprefix("./").rsplit(":", 1) for line in done.stdout.splitlines())
    return {path: int(count) for path, count in lines}


def _ordered(hits: Sequence[dict[str, int]]) -> list[str]:
    words = Counter(path for files in hits for path in files)
    total: Counter[str] = sum((Counter(files) for files in hits), Counter())
    return sorted(words, key=lambda path: (-words[path], -total[path], path))
