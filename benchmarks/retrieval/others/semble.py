"""The `semble` package in a Python that has it (requirements/bench.in): its BM25 and ranking, alone
or with the vectors of codeinfo's embedder.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, folder_of
from benchmarks.retrieval.scores import Ask

CHILD = Path(__file__).with_name("semble_child.py")
HERE = Path(__file__).resolve().parents[3]
RETURNED = 20


def system(python: Path, checkouts: Path, *, vectors: bool = False) -> Ask:
    child = _Child(python, *(["--vectors"] if vectors else []))
    indexed: list[str] = []

    def ask(repository: Repository, question: Question) -> Sequence[Place]:
        if indexed != [repository.name]:
            child.call(folder=str(folder_of(repository, checkouts)))
            indexed[:] = [repository.name]
        found = child.call(question=question.text, k=RETURNED)["places"]
        return [Place(repository.path_of(path), *rest) for path, *rest in found]

    return ask


class _Child:
    """A line of JSON in, a line of JSON out."""

    def __init__(self, python: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [python, "-P", CHILD, *options],  # -P: `import semble` is not to find this file
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(HERE)},
            text=True,
        )

    def call(self, **request: object) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("semble's process ended; is it installed where --others points?")
        return json.loads(line)
