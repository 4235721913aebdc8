"""Whatever of an index is missing or changed: a tool answers as before, or says what it lacks."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.core.config import config
from apps.core.errors import Unavailable
from apps.index.grams import get_grams, reset_grams
from apps.index.mapped.opened import opened_roots
from apps.index.texts import get_texts, reset_texts
from apps.lookup.symbols import callers, imports, project
from apps.lookup.symbols.project import reset_facts
from apps.tools.context import build
from apps.tools.tools import TOOLS
from tests.support.calls import CALLS
from tests.support.git import commit_all, init
from tests.support.index import index
from tests.support.ingested import CALLER, SAMPLE, ingest, write_files

__all__ = ["index"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

# Its store has several blocks, and each file of the sample is in one.
FILES = SAMPLE | CALLER | {f"src/more_{n}.py": f"# {n}\n" * 4_000 for n in range(6)}
# As they were committed.
BEFORE = {"src/retry.py": FILES["src/retry.py"].replace("attempt < self", "attempt <= self")}
SECONDS = 60.0
# What tells of the disk or of the way, and not of the result.
ASIDE = (
    *("changed", "slow", "generations", "generation"),
    *("index", "partial", "stale", "changedFiles", "gone"),
)
FOLDERS = ("index", "texts", "grams")


def delete(path: Path, at: float) -> None:
    path.unlink()


def flip(path: Path, at: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path, at: float) -> None:
    path.write_bytes(path.read_bytes()[: int(at * path.stat().st_size)])


Damage = tuple[str, Callable[[Path, float], None], float, float]
DAMAGES = st.lists(
    st.tuples(
        st.sampled_from([*FOLDERS, "source"]),
        st.sampled_from([delete, flip, cut]),
        st.floats(0, 1, exclude_max=True),  # which file
        st.floats(0, 1, exclude_max=True),  # where in it
    ),
    min_size=1,
    max_size=12,
)
ALL_GONE: Sequence[Damage] = [
    ("texts", delete, 0, 0),
    *(("source", delete, 0, 0) for _ in FILES),
]


@pytest.fixture
def lighthouse(folder: Path, index: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of a repository, whose index is in a copy too."""
    # No answer depends on how busy the machine is.
    monkeypatch.setattr(build, "USES_SECONDS", SECONDS)
    for module in (callers, imports, project):
        monkeypatch.setattr(module, "PARSE_SECONDS", SECONDS)
    reset()
    for name in ("texts", "grams"):
        shutil.rmtree(config().data_dir / name, ignore_errors=True)
    source = write_files(init(folder / "lighthouse"), FILES | BEFORE)
    commit_all(source)
    write_files(source, FILES)
    ingest(source, "lighthouse")
    get_grams().maintain(get_texts())
    reset()
    for name in FOLDERS:
        shutil.copytree(config().data_dir / name, folder / "copy" / name)
    shutil.copytree(source, folder / "copy" / "source")
    return source


def reset() -> None:
    """As a process that has just started."""
    opened_roots.keep_only([])
    reset_texts()
    reset_grams()
    reset_facts()


def restore(source: Path) -> None:
    reset()
    for place in (*(config().data_dir / name for name in FOLDERS), source):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source.parent / "copy" / place.name.replace("lighthouse", "source"), place)


def answers() -> Mapping[str, Any]:
    """The answer of each tool; None if it says that it cannot answer."""
    found: dict[str, Any] = {}
    for tool in TOOLS:
        try:
            answer = tool.run(CALLS[tool.name])
        except Unavailable:
            found[tool.name] = None
        else:
            found[tool.name] = {k: v for k, v in answer.items() if k not in ASIDE}
    return found


@pytest.mark.fault("A file of the index changes on the disk")
@pytest.mark.parametrize("running", [False, True])
def test_a_tool_answers_as_before_or_says_what_is_missing(lighthouse: Path, running: bool) -> None:
    before = answers()
    assert all(before.values())

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(DAMAGES)
    @example(ALL_GONE)
    def holds(damages: Sequence[Damage]) -> None:
        restore(lighthouse)
        if running:
            answers()
        for where, how, which, at in damages:
            place = lighthouse if where == "source" else config().data_dir / where
            files = sorted(
                path
                for path in place.rglob("*")
                if path.is_file()
                and not path.name.startswith("index.sqlite3")
                and ".git" not in path.parts
            )
            if files and (file := files[int(which * len(files))]).stat().st_size:
                how(file, at)
        if running:
            # What is in memory is right, and what was written to is compared.
            reset_facts()
        else:
            reset()
        is_changed = any(where == "source" for where, *_ in damages)
        for name, answer in answers().items():
            if name in ("Impact", "CheckCitations") and is_changed:
                continue  # they are about these files
            is_marked = answer is None or "degraded" in answer
            assert is_marked or answer == before[name], name

    holds()
