"""Parse processes that are killed in an ingest: the index comes to be that of a clean ingest."""

import itertools
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from django.test import Client

from apps.index import queries
from apps.index.models import Root
from apps.index.parsing import Chunker
from apps.index.parsing.process import ParseProcess
from apps.ingest.runs import pipeline
from tests.index import unruly_parser
from tests.support.ingested import files_of, ingest, ingest_alone, run_ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.kill]

Contents = Callable[[Root], dict[str, str]]
# Files that are large enough to be cut otherwise by lines.
SOURCES = Path(pipeline.__file__).parents[1]
FAILED = "Parsing failed: cut by lines"


def functions(count: int) -> str:
    """Definitions that a parser keeps whole and a cut by lines does not."""
    bodies = (
        "".join(f"    x{line} = {line} * {n}\n\n" for line in range(60)) for n in range(count)
    )
    return "".join(f"def f{n}():\n{body}\n" for n, body in enumerate(bodies))


def problems(root: Root) -> dict[str, str]:
    rows = queries.live_files(root).with_problem()
    return dict(rows.values_list("path", "problem"))


@pytest.fixture
def unruly(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Ingests parse by a process that obeys the first line of a file; undo: by the real one."""
    parser = partial(Chunker, command=unruly_parser.COMMAND)
    monkeypatch.setattr(pipeline, "Chunker", parser)
    return monkeypatch


@pytest.mark.fault("What a completed run promises", "A parser is killed or takes too long")
def test_a_file_whose_parse_fails_says_so_and_is_tried_again_by_the_next_run(
    client: Client, folder: Path, index: None, contents: Contents, unruly: pytest.MonkeyPatch
) -> None:
    files = {"bad.py": f"crash\n{functions(3)}", "good.py": functions(3)}
    repo = write_files(folder / "repo", files)
    root = ingest(repo)
    assert problems(root) == {"bad.py": FAILED}
    html = client.get(f"/ui/ingest/skipped?root={root.id}").content.decode()
    assert FAILED in html
    assert "1 file with a problem" in client.get("/ingest").content.decode()
    # As it was: that is no change, and nothing of the index is written again.
    second = run_ingest(repo)
    assert (second.state, second.message, second.unchanged) == ("skipped", "No changes detected", 2)
    root.refresh_from_db()
    assert (root.generation, problems(root)) == (1, {"bad.py": FAILED})

    unruly.undo()
    healed = run_ingest(repo)
    assert (healed.state, healed.files) == ("completed", 1)
    assert problems(root) == {}
    clean = ingest_alone(write_files(folder / "clean", files_of(repo)))
    assert contents(root) == contents(clean)


@pytest.mark.fault("A parser is killed or takes too long")
def test_a_parse_that_took_too_long_is_told_and_not_tried_again(
    folder: Path, index: None, unruly: pytest.MonkeyPatch
) -> None:
    unruly.setattr(pipeline, "Chunker", partial(pipeline.Chunker, parse_seconds=0.3))
    repo = write_files(folder / "repo", {"slow.py": f"hang\n{functions(1)}"})
    root = ingest(repo)
    assert problems(root) == {"slow.py": "Parsing took too long: cut by lines"}
    unruly.undo()
    assert run_ingest(repo).message == "No changes detected"
    assert problems(root) == {"slow.py": "Parsing took too long: cut by lines"}
    write_files(repo, {"slow.py": functions(1)})
    assert run_ingest(repo).state == "completed"
    assert problems(root) == {}


UNREAD = "The parser could not read 100 % of this file"
OTHERS_TOO_LONG = "Not parsed, as other files of its language took too long: cut by lines"


@pytest.mark.fault("A parser is killed or takes too long")
def test_files_that_parse_slowly_do_not_hold_the_worker(
    client: Client, folder: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each parse ends within its own limit: 40 of them take half a minute, thousands take hours."""
    brackets = "\n".join(["[" * 80] * 300)
    files = {f"bad{number:02}.py": f"x{number} = {brackets}" for number in range(40)}
    repo = write_files(folder / "hostile", files | {"good.js": "function good() {}\n"})
    monkeypatch.setattr(pipeline, "Chunker", partial(Chunker, run_seconds=1.0))
    root = ingest(repo)
    marked = problems(root)
    assert set(marked.values()) == {OTHERS_TOO_LONG, UNREAD}
    assert "good.js" not in marked
    assert list(marked.values()).count(OTHERS_TOO_LONG) > 10
    assert queries.live_files(root).ingested().exclude(chunks=0).count() == 41
    html = client.get(f"/ui/ingest/skipped?root={root.id}").content.decode()
    assert OTHERS_TOO_LONG in html
    assert f"{len(marked)} files with a problem" in client.get("/ingest").content.decode()
    # The worker is free for others, and a file is parsed again when it has changed.
    assert run_ingest(write_files(folder / "other", {"a.py": "a = 1\n"})).state == "completed"
    assert run_ingest(repo).message == "No changes detected"
    changed = max(marked)
    write_files(repo, {changed: functions(1)})
    assert run_ingest(repo).files == 1
    assert problems(root).keys() == marked.keys() - {changed}


@pytest.mark.fault("A parser is killed or takes too long")
@pytest.mark.parametrize("every", [3, 7])
def test_after_kills_of_its_parsers_the_index_is_that_of_a_clean_ingest(
    folder: Path, index: None, contents: Contents, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    files = {path.name: path.read_text() for path in sorted(SOURCES.rglob("*.py"))}
    repo = write_files(folder / "repo", files)
    clean = ingest_alone(write_files(folder / "clean", files))
    calls = itertools.count(1)
    killed = []
    real = ParseProcess.receive

    def receive(process: ParseProcess) -> bytes:
        if next(calls) % every == 0:
            os.kill(process.pid, signal.SIGKILL)
            killed.append(process)
        return real(process)

    with monkeypatch.context() as patch:
        patch.setattr(ParseProcess, "receive", receive)
        root = ingest_alone(repo)
    assert len(killed) > 5
    # Who was hit twice says so, and nobody else differs.
    problem_of = problems(root)
    expected, actual = contents(clean), contents(root)
    differing = {key.rpartition(":")[0] for key in expected if actual.get(key) != expected[key]}
    assert differing <= problem_of.keys()
    assert set(problem_of.values()) <= {FAILED}
    run_ingest(repo)
    assert contents(root) == contents(clean)
    assert problems(root) == {}
