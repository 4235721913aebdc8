"""The `semble` package's BM25 with its ranking, in a Python that has it: requirements/bench.in."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.retrieval.metric import Place
from benchmarks.retrieval.questions import Question, Repository, folder_of
from benchmarks.retrieval.scores import Ask

CHILD = Path(__file__).with_name("semble_child.py")
RETURNED = 20


def system(python: Path, checkouts: Path) -> Ask:
    child = _Child(python)
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

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [python, "-P", CHILD],  # -P: `import semble` is not to find this file
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def call(self, **request: object) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("semble's process ended; is it installed where --others points?")
        return json.loads(line)
