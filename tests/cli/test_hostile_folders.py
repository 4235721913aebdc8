"""Verbs, and the servers and processes that they start, run nothing of the current folder."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from codeinfo_cli import server, verbs
from tests.cli.bridge import end_server, started
from tests.cli.command import CODEINFO, Command, command
from tests.cli.hostile import Hostile, hostile
from tests.support.git import commit_all, init
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

# Verb → its arguments. The first one starts the server.
CALLS: dict[str, tuple[str, ...]] = {
    "ingest": (),
    "search": ("retry", "delay"),
    "grep": ("backoff_delay",),
    "ask": ("-p", "builtin", "which class limits retries"),
    "context": ("how are retries limited",),
    "read": ("src/retry.py",),
    "ls": ("-l",),
    "overview": (),
    "history": (),
    "impact": (),
    "check": ("README.md",),
    "open": ("--print", "src/retry.py"),
    "repos": (),
    "status": (".",),
    "install": ("cursor", "--yes"),
    "uninstall": ("cursor", "--yes"),
    "backup": ("{home}/archive.tar.gz",),
    "restore": ("{home}/archive.tar.gz", "--data-dir", "{home}/restored"),
    "doctor": (),
    "completion": ("bash",),
    "manage": ("verify_index",),
    "remove": ("workspace", "--yes"),
    "stop": ("--yes",),
}
# These run until they are ended.
LASTING = {"mcp", "serve", "worker"}


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    with command(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def workspace(cli: Command) -> Hostile:
    made = hostile(cli.home / "src")
    commit_all(init(made.path))
    cli.environment = made.variables(cli.environment)
    return made


@pytest.mark.parametrize("verb", CALLS)
def test_a_verb_runs_nothing_of_the_current_folder(
    cli: Command, workspace: Hostile, verb: str
) -> None:
    arguments = [each.format(home=cli.home) for each in CALLS[verb]]
    with workspace.watched():
        # Nothing has changed, and nothing is cited: status 1.
        cli.run(verb, *arguments, cwd=workspace.path, status=int(verb in ("impact", "check")))
    assert workspace.ran == []
    if verb == "ingest":
        assert {"src/retry.py", "sitecustomize.py"} <= workspace.opened
        workspace.opened.clear()
    if verb == "impact":
        # It looks at the work tree as an ingest does.
        workspace.opened.clear()
    if verb == "check":
        assert workspace.opened == {"README.md"}  # the text that is checked
        workspace.opened.clear()
    if verb == "history":
        # Its commits, and not the configuration beside them.
        read = {path.split("/")[1] for path in workspace.opened if path.startswith(".git/")}
        assert read <= {"HEAD", "refs", "objects"}
        workspace.opened = {path for path in workspace.opened if not path.startswith(".git/")}
    assert workspace.opened == set()


def test_every_verb_is_tried() -> None:
    assert {verb.name for verb in verbs.VERBS} == LASTING | set(CALLS)


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:9"])  # embedded, and a server that is away
def test_chroma_takes_no_settings_from_the_current_folder(
    cli: Command, workspace: Hostile, url: str
) -> None:
    environ = cli.environment | {"CODEINFO_CHROMA": "follow", "CHROMA_URL": url}
    health = f"http://127.0.0.1:{environ['PORT']}/health"

    def is_opened() -> bool:
        word = httpx.get(health, timeout=60).json()["parts"]["chroma"]["word"]
        return bool(word == ("Failed" if url else "Complete"))

    with (
        workspace.watched(),
        (cli.home / "serve.log").open("wb") as log,
        subprocess.Popen(
            [CODEINFO, "serve"], cwd=workspace.path, env=environ, stdout=log, stderr=log
        ) as serving,
    ):
        wait_until(lambda: serving.poll() is not None or server.running(cli.data) is not None)
        wait_until(is_opened, 120)
        serving.terminate()
    assert (workspace.ran, workspace.opened) == ([], set()), (cli.home / "serve.log").read_text()


def test_a_server_in_the_terminal_runs_nothing_of_the_current_folder(
    cli: Command, workspace: Hostile
) -> None:
    with (
        workspace.watched(),
        (cli.home / "serve.log").open("wb") as log,
        subprocess.Popen(
            [CODEINFO, "serve"], cwd=workspace.path, env=cli.environment, stdout=log, stderr=log
        ) as serving,
    ):
        wait_until(lambda: serving.poll() is not None or server.running(cli.data) is not None)
        cli.run("status", cwd=workspace.path)
        serving.terminate()
    assert (workspace.ran, workspace.opened) == ([], set()), (cli.home / "serve.log").read_text()


def test_a_bridge_starts_a_server_that_runs_nothing_of_the_current_folder(
    cli: Command, workspace: Hostile, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    variables = cli.environment | {"CODEINFO_DATA_DIR": str(data)}
    with workspace.watched(), started([str(CODEINFO), "mcp"], variables, workspace.path) as client:
        client.shake_hands()
        call = {"name": "ListIngestedRepositories", "arguments": {}}
        assert "result" in client.ask("tools/call", call)
        assert client.end() == 0
    end_server(data)
    # Whether the folder is a work tree of git, which the first call ingests, is read from that.
    assert (workspace.ran, workspace.opened - {".git/HEAD"}) == ([], set())
