"""`codeinfo ingest`: its progress, Ctrl-C, and how runs end."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from codeinfo_cli import server
from tests.cli.command import CODEINFO, Command, command
from tests.cli.terminal import CTRL_C
from tests.stand_ins.embeddings_server import EmbeddingsServer
from tests.support.ingested import write_files
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

MODEL = "openai:text-embedding-small"


class Held:
    """An embedding server that answers nothing while it is closed. So a run stays in progress."""

    def __init__(self) -> None:
        self.server = EmbeddingsServer()
        self.opened = threading.Event()
        self.opened.set()
        self.server.before_answer = lambda: self.opened.wait(300)


@pytest.fixture(scope="module")
def held() -> Iterator[Held]:
    made = Held()
    with made.server:
        yield made
        made.opened.set()


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, held: Held) -> Iterator[Command]:
    """`lighthouse` is ingested with a model of the embedding server."""
    home = tmp_path_factory.mktemp("home")
    environ = {"CODEINFO_EMBEDDING_CACHE_MB": "0", "CODEINFO_IDLE_STOP_SECONDS": "2"}
    with command(home, CODEINFO_EMBEDDING_BASE_URL=held.server.url, **environ) as made:
        made.run("ingest", "--model", MODEL)
        yield made
        held.opened.set()


@pytest.fixture
def closed(held: Held) -> Iterator[threading.Event]:
    """No run can go on during the test, until it sets the event."""
    held.opened.clear()
    yield held.opened
    held.opened.set()


_numbers = iter(range(1_000))


def changed(user: Command) -> None:
    """Give the next ingest of the sample something to do."""
    text = f"# Number {next(_numbers)}\n\nAnother text.\n"
    write_files(user.lighthouse, {"src/changed.md": text})


def runs(user: Command) -> list[str]:
    done = user.of([str(CODEINFO), "status", "--json"])
    if done.returncode == 1:  # no server, no run
        return []
    return [run["state"] for run in json.loads(done.stdout)["runs"]["runs"]]


def idle(user: Command) -> None:
    wait_until(lambda: runs(user) == [])


def test_a_folder_is_ingested_and_again_if_it_has_changed(cli: Command) -> None:
    folder = write_files(cli.home / "src" / "mill", {"mill.py": "def grind() -> None: ...\n"})
    first = cli.run("ingest", str(folder), "--description", "grinds corn")
    assert first.stdout == "mill: 1 file, 1 passage\n"
    assert cli.run("ingest", cwd=folder).stdout == "mill: nothing has changed\n"
    write_files(folder, {"more.py": "def sift() -> None: ...\n"})
    again = cli.json("ingest", cwd=folder)
    assert (again["state"], again["counts"]["files"]) == ("completed", 1)
    assert cli.lines("ls", cwd=folder) == ["mill.py", "more.py"]
    # What an option does not name stays as it is.
    cli.run("ingest", "--name", "watermill", cwd=folder)
    assert cli.json("status", "watermill")["description"] == "grinds corn"
    assert "would be" in cli.run("ingest", "--dry-run", cwd=folder).stdout
    cli.run("remove", "watermill", "--yes")


def test_wrong_folders_names_and_models(cli: Command) -> None:
    assert "is not a folder" in cli.run("ingest", "nowhere", status=2).stderr
    folder = write_files(cli.home / "src" / "other", {"other.py": "other = 1\n"})
    taken = cli.run("ingest", str(folder), "--name", "harbour", status=2).stderr
    assert "codeinfo ingest PATH --name NAME" in taken
    locked = cli.run("ingest", str(folder), "--model", "another", status=2).stderr
    assert "Leave out --model" in locked
    own = json.loads(cli.run("ingest", "--json", str(cli.home / "src"), "-n", "harbour",
                             status=2).stdout)  # fmt: skip
    assert own["code"] == "NAME_TAKEN"


def test_files_that_disappeared_need_force(cli: Command) -> None:
    many = {f"m{number}.py": f"value = {number}\n" for number in range(30)}
    folder = write_files(cli.home / "src" / "fading", many)
    cli.run("ingest", str(folder))
    for name in list(many)[:25]:
        (folder / name).unlink()
    refused = cli.run("ingest", cwd=folder, status=1)
    assert "codeinfo ingest --force" in refused.stderr
    cli.run("ingest", "--force", cwd=folder)
    assert len(cli.lines("ls", cwd=folder)) == 5
    cli.run("remove", "fading", "--yes")


def test_a_terminal_shows_a_bar_and_ctrl_c_asks(user: Command, closed: threading.Event) -> None:
    changed(user)
    with user.terminal("ingest", columns=100) as terminal:
        terminal.until("Ingesting lighthouse")
        terminal.type(CTRL_C)
        terminal.until("c, b or w:")
        # Another answer is asked for again; to watch on shows the bar; then it is cancelled.
        terminal.seen = ""
        terminal.type("x\n")
        terminal.until("c, b or w:")
        terminal.type("w\n")
        terminal.seen = ""
        terminal.until("Ingesting lighthouse")
        terminal.type(CTRL_C)
        terminal.until("c, b or w:")
        terminal.type("c\n")
        assert terminal.end() == 130
        assert "was cancelled" in terminal.seen
    closed.set()
    idle(user)
    assert "src/changed.md" not in user.lines("ls", "src")


def test_a_second_ctrl_c_cancels(user: Command, closed: threading.Event) -> None:
    changed(user)
    with user.terminal("ingest") as terminal:
        terminal.until("Ingesting lighthouse")
        terminal.type(CTRL_C)
        terminal.until("c, b or w:")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
        assert "was cancelled" in terminal.seen
    closed.set()
    idle(user)


def test_a_run_left_in_the_background_goes_on_and_keeps_the_server(
    user: Command, closed: threading.Event
) -> None:
    changed(user)
    with user.terminal("ingest") as terminal:
        terminal.until("Ingesting lighthouse")
        terminal.type(CTRL_C)
        terminal.until("c, b or w:")
        terminal.type("b\n")
        assert terminal.end() == 0
        assert "goes on in the background" in terminal.seen
    address = server.running(user.data)
    # Nothing uses the server but the run. Its idle time is 2 s.
    wait_until(lambda: seconds_since_start(user) > 8)
    assert server.running(user.data) == address
    assert runs(user) == ["embedding"]
    refused = user.run("stop", status=2).stderr
    assert "An ingest is in progress: lighthouse." in refused and "--yes" in refused
    assert "run     embedding lighthouse" in user.run("status").stdout
    other = write_files(user.home / "src" / "other", {"other.py": "other = 1\n"})
    assert "codeinfo status shows" in user.run("ingest", str(other), status=2).stderr
    # The verb of the same folder shows that run.
    with user.terminal("ingest") as terminal:
        terminal.until("is in progress already")
        closed.set()
        assert terminal.end() == 0
    wait_until(lambda: server.running(user.data) is None)
    assert "src/changed.md" in user.lines("ls", "src")


def seconds_since_start(user: Command) -> float:
    clock = user.home / "clock"
    clock.write_text("")
    return clock.stat().st_mtime - (user.lighthouse / "src/changed.md").stat().st_mtime


def test_background_does_not_wait(user: Command, closed: threading.Event) -> None:
    changed(user)
    assert "in the background" in user.run("ingest", "--background").stdout
    assert runs(user) != []
    closed.set()
    idle(user)
    changed(user)
    assert set(user.json("ingest", "-b")) == {"runId"}
    idle(user)


def test_without_a_terminal_ctrl_c_cancels(user: Command, closed: threading.Event) -> None:
    changed(user)
    process = ingesting(user)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "was cancelled" in errors
    closed.set()
    idle(user)


def test_a_command_that_is_ended_by_another_signal_leaves_the_run(
    user: Command, closed: threading.Event
) -> None:
    changed(user)
    process = ingesting(user)
    process.terminate()
    process.communicate(timeout=60)
    assert runs(user) != []
    closed.set()
    idle(user)


def ingesting(user: Command) -> "subprocess.Popen[str]":
    """`codeinfo ingest` without a terminal, once its run is in progress."""
    process = start(user, "ingest")
    assert process.stderr is not None
    while "Ingesting" not in process.stderr.readline():
        assert process.poll() is None
    return process


def start(user: Command, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [CODEINFO, *arguments],
        cwd=user.lighthouse,
        env=user.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_server_that_dies_meanwhile_is_one_sentence(
    user: Command, closed: threading.Event
) -> None:
    changed(user)
    process = ingesting(user)
    address = server.running(user.data)
    assert address is not None
    os.kill(address.pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "The server stopped before it answered." in errors and "Traceback" not in errors
    closed.set()
