"""The parse process may hang, crash or be killed; the files come out all the same."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from apps.code.values import ChunkedFile
from apps.core.errors import Unavailable
from apps.index.parsing import Chunker, failures
from apps.index.parsing.pool import end_spares
from tests.index import unruly_parser

pytestmark = pytest.mark.door

PROJECT = Path(__file__).resolve().parents[2]
GOOD = b"def good():\n    return 1\n"


def unruly(parse_seconds: float = 0.5, processes: int = 1) -> Chunker:
    return Chunker(parse_seconds=parse_seconds, processes=processes, command=unruly_parser.COMMAND)


def symbols(chunked: list[ChunkedFile]) -> list[str]:
    return [chunk.symbol for file in chunked for chunk in file.chunks]


@pytest.mark.parametrize("order", ["hang", "crash"])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_parse_that_never_returns_or_crashes_costs_only_its_own_tree(
    order: str, processes: int
) -> None:
    bad = f"{order}\ndef bad():\n    return 2\n".encode()
    items = [("a.py", GOOD), ("b.py", bad), ("c.py", GOOD), ("d.py", bad), ("e.py", GOOD)]
    with unruly(processes=processes) as chunker:
        chunked = chunker.chunk_many(items)
    assert [file.path for file in chunked] == ["a.py", "b.py", "c.py", "d.py", "e.py"]
    assert symbols(chunked) == ["good", "", "good", "", "good"]
    by_lines = chunked[1].chunks[0]
    assert by_lines.text == bad.decode().rstrip("\n")
    assert (by_lines.start_line, by_lines.end_line, by_lines.names) == (1, 3, ("bad",))
    assert chunked[1].language == "python"


@pytest.mark.fault("A parser is killed or takes too long")
@pytest.mark.parametrize("processes", [1, 2])
def test_a_file_whose_process_is_killed_is_parsed_again_in_another(
    tmp_path: Path, processes: int
) -> None:
    items = [("a.py", GOOD)]
    for name in "bc":
        killed = f"killed {tmp_path / name}\ndef {name}():\n    return 2\n".encode()
        items += [(f"{name}.py", killed), (f"{name}{name}.py", GOOD)]
    with unruly(processes=processes) as chunker:
        chunked = chunker.chunk_many(items)
    assert symbols(chunked) == ["good", "b", "good", "c", "good"]
    assert [file.problem for file in chunked] == [""] * 5


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        ("crash", "Parsing failed: cut by lines"),
        ("hang", "Parsing took too long: cut by lines"),
    ],
)
def test_a_file_that_cannot_be_parsed_has_a_problem(order: str, problem: str) -> None:
    items = [("a.py", f"{order}\nx = 1\n".encode()), ("b.py", GOOD), ("c.txt", b"words\n")]
    with unruly() as chunker:
        assert [file.problem for file in chunker.chunk_many(items)] == [problem, "", ""]


OTHERS = {
    "crash": "Not parsed, as parsing other files of its language failed: cut by lines",
    "hang": "Not parsed, as other files of its language took too long: cut by lines",
}


@pytest.mark.fault("A parser is killed or takes too long")
@pytest.mark.parametrize("order", OTHERS)
@pytest.mark.parametrize("processes", [1, 2])
def test_after_many_failures_a_language_is_no_longer_parsed(
    order: str, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most one more of each process fails: a batch that is under way is not continued."""
    monkeypatch.setattr(failures, "MAX_FAILURES", 3)
    bad = f"{order}\nx = 1\n".encode()
    items = [item for n in range(20) for item in ((f"{n}.py", bad), (f"{n}.js", b"let x = 1\n"))]
    with unruly(parse_seconds=0.1, processes=processes) as chunker:
        chunked = chunker.chunk_many([*items, ("last.py", GOOD)])
    found = Counter(file.problem for file in chunked if file.path.endswith(".py"))
    assert found[OTHERS[order]] >= 21 - 3 - processes
    assert found[""] == 0 and chunked[-1].chunks
    assert {file.problem for file in chunked if file.path.endswith(".js")} == {""}


def test_of_other_languages_a_part_of_the_failures_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a folder could begin anew with each of forty grammars. A single failure is not
    enough."""
    monkeypatch.setattr(failures, "MAX_FAILURES", 8)
    bad = b"crash\nx = 1\n"
    items = [(f"{n}.py", bad) for n in range(9)]
    items += [("0.go", bad), ("1.go", b"package a\n"), ("2.go", bad), ("3.go", b"package a\n")]
    with unruly() as chunker:
        problem_of = {file.path: file.problem for file in chunker.chunk_many(items)}
    assert problem_of["8.py"] == OTHERS["crash"]
    assert (problem_of["1.go"], problem_of["3.go"]) == ("", OTHERS["crash"])


@pytest.mark.fault("A parser is killed or takes too long")
def test_processes_that_died_while_they_were_idle_cost_no_tree() -> None:
    """Both are found dead only when they are asked: the file is parsed in a third."""
    with unruly(processes=2) as chunker:
        chunker.chunk_many([(f"{n}.py", GOOD) for n in range(64)])
        for process in chunker.pool.all_processes:
            process.kill()
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert symbols(chunker.chunk_many([("a.py", GOOD)])) == ["good"]


def test_a_file_that_crashes_the_real_grammar_is_cut_by_lines() -> None:
    nested = "".join(f"{'  ' * depth}- item {depth}\n" for depth in range(500))
    with Chunker(parse_seconds=5) as chunker:
        file = chunker.chunk_many([("deep.md", nested.encode())])[0]
    assert "\n".join(chunk.text for chunk in file.chunks) == nested.rstrip("\n")


def test_a_command_that_cannot_run_leaves_everything_cut_by_lines() -> None:
    with Chunker(parse_seconds=5, command=("/bin/false",)) as chunker:
        assert symbols(chunker.chunk_many([("a.py", GOOD), ("b.py", GOOD)])) == ["", ""]


def test_close_from_another_thread_ends_the_work(tmp_path: Path) -> None:
    fifo = tmp_path / "hanging"
    os.mkfifo(fifo)
    chunker = unruly(parse_seconds=3600)
    errors: list[Unavailable] = []

    def work() -> None:
        try:
            chunker.chunk_many([("a.py", f"hang {fifo}\n".encode())] + [("b.py", GOOD)] * 100)
        except Unavailable as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    with fifo.open("rb"):  # opens once the parse process is about to hang
        chunker.close()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert [error.code for error in errors] == ["CHUNKER_CLOSED"]


def process_of(chunker: Chunker) -> int:
    """The number of the process that has parsed a file for a chunker."""
    assert symbols(chunker.chunk_many([("a.py", GOOD)])) == ["good"]
    (process,) = chunker.pool.all_processes
    return process.pid


def test_one_process_waits_for_the_next_chunker() -> None:
    with Chunker(parse_seconds=5) as chunker, Chunker(parse_seconds=5) as other:
        first, second = process_of(chunker), process_of(other)
    assert first != second
    with Chunker(parse_seconds=5) as chunker, Chunker(parse_seconds=5) as other:
        # Of the two, the one that was closed first: `other`'s.
        assert process_of(chunker) == second
        assert process_of(other) not in (first, second)
    end_spares()
    assert not Path(f"/proc/{second}").exists()


def test_a_process_that_died_while_it_waited_costs_no_tree() -> None:
    with Chunker(parse_seconds=5) as chunker:
        dead = process_of(chunker)
    os.kill(dead, signal.SIGKILL)
    os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
    with Chunker(parse_seconds=5) as chunker:
        assert process_of(chunker) != dead


def test_a_closed_chunker_raises() -> None:
    chunker = Chunker(parse_seconds=5)
    chunker.close()
    chunker.close()
    with pytest.raises(Unavailable) as caught:
        chunker.chunk_many([("a.py", GOOD)])
    assert caught.value.code == "CHUNKER_CLOSED"


PARENT = """
import sys
from apps.index.parsing import Chunker
from tests.index import unruly_parser
chunker = Chunker(parse_seconds={seconds}, command=unruly_parser.COMMAND)
chunker.chunk_many([("a.py", b"x = 1")])
print("ready", flush=True)
chunker.chunk_many([("a.py", {source!r}.encode())])[0] if {source!r} else sys.stdin.read()
"""


@pytest.mark.parametrize("hanging", [False, True], ids=["idle", "hanging"])
def test_the_process_dies_with_its_parent(tmp_path: Path, hanging: bool) -> None:
    fifo = tmp_path / "hanging"
    os.mkfifo(fifo)
    source = f"hang {fifo}\n" if hanging else ""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(seconds=1, source=source)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert parent.stdin and parent.stdout and parent.stderr
    with parent.stdin, parent.stdout, parent.stderr:
        assert parent.stdout.readline() == b"ready\n"
        if hanging:
            fifo.open("rb").close()
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        # The parse process holds this pipe too: its end is the end of both.
        assert parent.stderr.read() == b""


def test_the_process_knows_nothing_of_the_product() -> None:
    """It starts fast and small, and has no key or setting to lose."""
    code = "import sys, apps.code.syntax.__main__; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"django", "chromadb", "numpy", "codeinfo"} & set(modules)


def test_our_secrets_do_not_reach_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    end_spares()
    monkeypatch.setenv("CODEINFO_OPENAI_API_KEY", "sk-canary")
    with Chunker(parse_seconds=5) as chunker:
        chunker.chunk_many([("a.py", GOOD)])
        (process,) = chunker.pool.all_processes
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
    assert b"PYTHONPATH" in environ
    assert b"canary" not in environ
