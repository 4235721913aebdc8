"""The parts that a run writes answer look-ups as the words that it writes do."""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from apps.index import queries
from apps.index.lexical import get_lexical
from apps.index.mapped.copies import get_copies
from apps.index.models import Root
from benchmarks.shadow import Comparison, Shadow
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

CODE = Path(__file__).parents[2] / "apps/core/security"
WORDS = ("moor", "Moor", "ship_yard", "größe", "x", "Ship", "é1", "MOOR")


def random_files(seed: int) -> dict[str, str | bytes]:
    """Files in some languages, with names that occur in several of them, and in several cases."""
    chosen = random.Random(seed)
    files: dict[str, str | bytes] = {"empty.py": "", "blank.go": "\n\n", "bytes.txt": b"\xff\xfe"}
    for number in range(12):
        names = chosen.choices(WORDS, k=chosen.randint(0, 90))
        files[f"{number % 3}/{number}.py"] = "\n".join(
            f"class {name}{number % 2}:\n    def {name}(self):\n        return '{name} {number}'\n"
            for name in names
        )
        files[f"docs/{number}.md"] = "".join(f"# {name} {number}\n\nText.\n\n" for name in names)
    return files


def compared(root: Root) -> Sequence[Comparison]:
    lock = queries.index_lock()
    assert lock is not None
    mapped = get_copies().open(root, lock.dimension)
    assert mapped is not None
    shadow = Shadow(root, queries.live_file_ids(root), get_lexical(), mapped)
    comparisons = list(shadow.comparisons())
    assert [each.question for each in comparisons if each.words != each.parts] == []
    return comparisons


def test_parts_answer_as_the_words_before_and_after_a_change_of_a_worktree(
    folder: Path, store: Any, configure: Callable[..., None]
) -> None:
    configure(retrieval_memory_mb=64)
    first = write_files(folder / "first", random_files(1))
    shutil.copytree(CODE, first / "code", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(first, folder / "second")
    root, other = ingest(first), ingest(folder / "second")
    assert root.store == other.store
    before = compared(root)
    assert {each.kind for each in before} == {"outlines", "names", "beginnings", "facts"}
    assert len([each for each in before if each.words]) > 500
    # Some files go, some change, some are new: the parts and the store have dead ones.
    (folder / "second/0/0.py").unlink()
    shutil.rmtree(folder / "second/code/")
    write_files(folder / "second", {**random_files(2), "0/0.py": "def moor():\n    return 1\n"})
    other = ingest(folder / "second")
    assert root.store == other.store
    assert [each.words for each in compared(root)] == [each.words for each in before]
    assert compared(other)
