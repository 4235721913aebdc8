"""A parse process that misbehaves when the first line of a file tells it to.

hang            parses with a grammar that never returns
hang PATH       the same, after opening the FIFO at PATH so that a test knows
crash           dies at once
killed PATH     is killed, unless there is a file at PATH; leaves one there
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tree_sitter import Parser
from tree_sitter_language_pack import get_language

from apps.code.syntax.__main__ import serve
from apps.code.syntax.find import occurrences
from apps.code.syntax.pieces import Cut, Occurrence
from apps.code.syntax.trees import cut_along_tree

COMMAND = (sys.executable, "-m", "tests.index.unruly_parser")


def parse(lines: Sequence[str], max_chars: int, grammar: str) -> Cut:
    _obey(lines)
    return cut_along_tree(lines, max_chars, grammar)


def find(lines: Sequence[str], name: str, grammar: str) -> list[Occurrence]:
    _obey(lines)
    return occurrences(lines, name, grammar)


def _obey(lines: Sequence[str]) -> None:
    order, _, path = lines[0].partition(" ")
    if order == "hang":
        if path:
            os.close(os.open(path, os.O_WRONLY))
        Parser(get_language("cobol")).parse(b"x")
    if order == "crash":
        os.abort()
    if order == "killed" and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, {"cut": parse, "find": find})
