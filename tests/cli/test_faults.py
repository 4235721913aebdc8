"""What goes wrong around a verb: disks, streams, folders, a damaged server.json. The user gets one
sentence, or with --json one JSON text."""

import json
import os
import pwd
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.core import config
from apps.core.system import posix
from codeinfo_cli import project, server
from codeinfo_cli.clients import commands
from codeinfo_cli.errors import CliError
from codeinfo_cli.verbs import VERBS
from tests.cli.command import CODEINFO, Command, command
from tests.house.sources import HOME
from tests.support.ingested import write_files
from tests.support.small_disk import fill, small_disk

pytestmark = pytest.mark.door


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Command]:
    """A user whose server is not running."""
    with command(tmp_path, is_new=True) as made:
        yield made


def refused(user: Command, *arguments: str, **environ: str) -> str:
    """Run a verb that fails, and the same with --json. Return its message."""
    shown = user.run(*arguments, status=2, **environ)
    assert shown.stdout == ""
    done = user.run(*arguments, "--json", status=2, **environ)
    error = json.loads(done.stdout)
    assert error["status"] == "error" and f"codeinfo: {error['message']}" in shown.stderr
    return str(error["message"])


# Disks


@pytest.mark.fault("A verb of the command fails")
def test_a_full_disk_is_named(alone: Command) -> None:
    with small_disk(alone.home / "disk", 1) as disk:
        for verb, folder in (("ingest", "data"), ("repos", "data"), ("repos", "other")):
            done = alone.run(verb, status=2, CODEINFO_DATA_DIR=str(disk / folder))
            assert "full" in done.stderr or "No space left" in done.stderr
            fill(disk)


@pytest.mark.fault("A verb of the command fails")
def test_a_read_only_data_folder_is_named(alone: Command) -> None:
    with small_disk(alone.home / "disk", 1) as disk:
        data = {"CODEINFO_DATA_DIR": str(disk / "data")}
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        message = refused(alone, "search", "ship", **data)
        assert "Read-only file system" in message and "CODEINFO_DATA_DIR" in message
        done = alone.run("install", "cursor", "--yes", status=2, **data)
        assert "Read-only file system" in done.stderr
        assert not (alone.home / ".cursor").exists()


def test_a_file_in_the_place_of_the_data_folder_is_named(alone: Command) -> None:
    alone.data.write_text("")
    assert str(alone.data) in refused(alone, "search", "ship")
    message = refused(alone, "search", "ship", CODEINFO_DATA_DIR=str(alone.data / "below"))
    assert "Not a directory" in message


# The server's file


@pytest.mark.fault("A verb of the command fails")
def test_a_damaged_server_file_is_named_and_stop_mends_it(alone: Command) -> None:
    alone.run("repos", status=1)
    address = server.running(alone.data)
    assert address is not None
    (alone.data / "server.json").write_bytes(b"{")
    message = alone.run("search", "ship", status=2).stderr
    assert f"process {address.pid}" in message and "codeinfo stop" in message
    assert alone.json("stop")["pid"] == address.pid
    alone.run("repos", status=1)
    second = server.running(alone.data)
    assert second is not None and second.pid != address.pid


FACTS = {
    "version": "1",
    "pid": 1,
    "token": "t",
    "url": "http://127.0.0.1:5010",
    "mcp": {"tools": "http://127.0.0.1:5010/mcp"},
}
DAMAGED: dict[str, Any] = {
    "empty": b"",
    "half": b"{",
    "deep": b"[" * 100_000,
    "not UTF-8": b"\xff{}",
    "a list": [],
    "no token": {key: value for key, value in FACTS.items() if key != "token"},
    **{
        f"{key}: {value!r}": {**FACTS, key: value}
        for key, value in (
            ("url", 5),
            ("url", "http://127.0.0.1:many"),
            ("url", "/"),
            ("token", None),
            ("token", "t\u00e9"),
            ("token", "a\r\nHost: b"),
            ("pid", "many"),
            ("version", []),
            ("mcp", []),
            ("mcp", "text"),
            ("mcp", {"tools": 5}),
        )
    },
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_no_damaged_server_file_is_believed(tmp_path: Path, content: Any) -> None:
    held = posix.open_private(tmp_path / "server.lock")
    with held:
        assert posix.lock(held)
        (tmp_path / "server.json").write_text(json.dumps(FACTS))
        assert server.running(tmp_path) is not None
        damaged = content if isinstance(content, bytes) else json.dumps(content).encode()
        (tmp_path / "server.json").write_bytes(damaged)
        assert server.running(tmp_path) is None


def test_a_link_to_nothing_and_a_folder_are_no_server_file(alone: Command) -> None:
    alone.data.mkdir()
    (alone.data / "server.json").symlink_to(alone.home / "nowhere")
    assert alone.json("repos", status=1)["repos"] == []
    assert not (alone.home / "nowhere").exists()
    assert not (alone.data / "server.json").is_symlink()
    alone.run("stop")
    (alone.data / "server.json").mkdir()
    message = refused(alone, "search", "ship")
    assert f"{alone.data / 'server.json'} is a folder" in message
    (alone.data / "server.lock").unlink()
    (alone.data / "server.lock").mkdir()
    message = refused(alone, "search", "ship")
    assert f"{alone.data / 'server.lock'} is a folder" in message
    assert f"{alone.data / 'server.lock'} is a folder" in refused(alone, "stop")


# Streams


def shell(user: Command, line: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    done = user.of(["bash", "-o", "pipefail", "-c", line], **environ)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr, done.stderr
    return done


@pytest.mark.fault("A verb of the command fails")
@pytest.mark.parametrize(
    "verb",
    [
        "search -f retry",
        "search --json retry",
        "grep .",
        "grep . --json",
        "read src/retry.py",
        "ls -a -d 20",
        "repos",
        "status",
        "ask -p builtin retry",
        "ask -p builtin retry --json",
        "context retry",
        "completion bash",
        "search --help",
        "install --json",
    ],
)
def test_an_output_that_cannot_be_written_is_one_sentence(cli: Command, verb: str) -> None:
    done = shell(cli, f"codeinfo {verb} > /dev/full")
    assert done.returncode == 2
    assert "codeinfo: No space left on device." in done.stderr
    for ending in ("| true", "| head -1", ">&-", "2>&1 | true"):
        done = shell(cli, f"codeinfo {verb} {ending}")
        assert done.returncode == 0, (ending, done.stderr)


@pytest.mark.fault("A verb of the command fails")
def test_closed_streams_are_empty(cli: Command) -> None:
    assert shell(cli, "codeinfo search retry <&- | grep -c retry.py").stdout.strip() != "0"
    assert shell(cli, "codeinfo grep retry 2>&- >/dev/null").returncode == 0
    assert shell(cli, "codeinfo search <&- >&- 2>&-").returncode == 2
    assert shell(cli, "codeinfo remove harbour <&-").returncode == 2
    assert shell(cli, "codeinfo install cursor --print <&- >&- 2>&-").returncode == 0


# Names and encodings


@pytest.mark.fault("A verb of the command fails")
def test_a_folder_that_is_gone_or_not_utf8(cli: Command, tmp_path: Path) -> None:
    gone = shell(cli, f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir ../gone; codeinfo ls")
    assert gone.returncode == 2 and "does not exist any more" in gone.stderr
    strange = os.fsencode(cli.home / "src") + b"/stra\xffnge"
    os.mkdir(strange)
    with open(strange + b"/na\xfeme.py", "wb") as file:
        file.write(b"def strange_name(): ...\n")
    for verb in ("search retry", "grep retry", "ls", "repos", "status", "read nothing.py"):
        done = subprocess.run(
            f"{CODEINFO} {verb} --json",
            shell=True,
            cwd=strange,
            env=cli.environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 1, 2) and b"Traceback" not in done.stderr, done.stderr
        json.loads(done.stdout)
    done = shell(cli, "cd ../stra*; codeinfo ingest")
    assert done.returncode == 2 and "UTF-8" in done.stderr


@pytest.mark.parametrize(
    "environ",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "ascii"},
    ],
)
def test_terminals_that_are_not_utf8(cli: Command, environ: dict[str, str]) -> None:
    text = "def gruss(): return 'Grüße 漢字 \U0001f600'\n"
    folder = write_files(cli.home / "src" / "greeting", {"umlaut.py": text})
    cli.run("ingest", cwd=folder, **environ)
    for verb in (("grep", "gruss"), ("search", "gruss"), ("read", "umlaut.py")):
        assert "gruss" in cli.run(*verb, cwd=folder, **environ).stdout
        done = cli.of([str(CODEINFO), *verb, "--json"], folder, **environ)
        assert "Grüße" in json.dumps(json.loads(done.stdout), ensure_ascii=False)
    done = cli.of([str(CODEINFO), "grep", "Grüße", "--color", "always"], folder, **environ)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr
    cli.run("remove", "greeting", "--yes")


def test_a_narrow_terminal(cli: Command) -> None:
    for verb in (("search", "retry"), ("repos",), ("status",), ("ls", "-l"), ("--help",)):
        with cli.terminal(*verb, columns=40, NO_COLOR="1") as terminal:
            assert terminal.end() == 0
        assert "Traceback" not in terminal.seen and "\x1b[" not in terminal.seen


def test_a_user_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as some user id."""

    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CODEINFO_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(project, "IS_INSTALLED", True)
    assert Path("~") in config.default_bases()
    assert not project.settings_file().exists()
    for named in ("", "~/data", "~nobody-of-this-name/data"):
        monkeypatch.setenv("CODEINFO_DATA_DIR", named)
        with pytest.raises(CliError) as caught:
            project.data_dir()
        assert caught.value.code == "NO_HOME"
    monkeypatch.setenv("CODEINFO_DATA_DIR", "/data")
    assert project.data_dir() == Path("/data")
    with pytest.raises(CliError) as caught:
        commands.machine()
    assert caught.value.code == "NO_HOME"


# JSON


WRONG: dict[str, tuple[str, ...]] = {
    "search": ("search",),
    "grep": ("grep", "("),
    "ask": ("ask", "-p", "nobody", "x"),
    "context": ("context", "-n", "1", "x"),
    "read": ("read", "nowhere.py"),
    "ls": ("ls", "-g", "!a"),
    "overview": ("overview", "nobody"),
    "history": ("history", "nowhere.py"),
    "impact": ("impact", "nobody"),
    "check": ("check", "nowhere.md"),
    "open": ("open", "nowhere.py"),
    "ingest": ("ingest", "/nowhere"),
    "repos": ("repos", "x"),
    "remove": ("remove", "nobody", "-y"),
    "mcp": ("mcp", "--endpoint", "nothing"),
    "install": ("install", "emacs"),
    "uninstall": ("uninstall", "emacs"),
    "status": ("status", "nobody"),
    "serve": ("serve", "--nothing"),
    "worker": ("worker", "--nothing"),
    "stop": ("stop", "x"),
    "doctor": ("doctor", "x"),
    "backup": ("backup", "/nowhere/at/all.tar.gz"),
    "restore": ("restore", "/nowhere.tar.gz", "--data-dir", "/nowhere/data"),
    "completion": ("completion", "tcsh"),
}


@pytest.mark.fault("A verb of the command fails")
@pytest.mark.parametrize("name", [verb.name for verb in VERBS if verb.name != "manage"])
def test_an_error_of_each_verb_is_one_json_text(cli: Command, name: str) -> None:
    done = cli.run(*WRONG[name], "--json", status=2)
    error = json.loads(done.stdout)
    assert error.get("code") or error.get("error"), error
    shown = cli.run(*WRONG[name], status=2)
    assert shown.stdout == "" and shown.stderr.startswith("codeinfo: ")


def test_an_installation_that_fails_is_one_json_text(cli: Command) -> None:
    config = cli.home / ".cursor" / "mcp.json"
    (cli.home / ".cursor" / "skills").mkdir(parents=True)
    (cli.home / ".cursor" / "skills" / "codeinfo").write_text("in the way")
    done = cli.run("install", "cursor", "--yes", "--json", status=2)
    assert json.loads(done.stdout)["code"] == "CLIENT_REFUSED"
    (cli.home / ".cursor" / "skills" / "codeinfo").unlink()
    assert cli.json("install", "cursor", "--yes")["written"] and config.is_file()
    assert cli.json("uninstall", "cursor", "--yes")["written"] and not config.exists()


# Ctrl-C

# Presses Ctrl-C when the command imports a module, or with "end", when it ends.
PRESSING = """
import atexit, os, signal, sys
moment = sys.argv.pop(1)
press = lambda: os.kill(os.getpid(), signal.SIGINT)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            press()
sys.meta_path.insert(0, Finder())
if moment == "end":
    atexit.register(press)
from codeinfo_cli.__main__ import main
main()
"""
MOMENTS = ("click", "codeinfo_cli.main", "codeinfo_cli.grep_verb", "http.client", "end")


@pytest.mark.fault("A verb of the command fails")
@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_never_shows_a_traceback(cli: Command, moment: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSING, moment, "grep", "retry"],
        cwd=cli.lighthouse,
        env=cli.environment | {"PYTHONPATH": str(HOME)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode in (-signal.SIGINT, 130)
    assert done.stderr.strip() in ("", "codeinfo: Stopped.")


def test_an_ignored_ctrl_c_stays_ignored(cli: Command) -> None:
    """As of a command that a script has started in the background."""
    line = f"trap '' INT; {sys.executable} -c {shlex.quote(PRESSING)} click grep -l retry"
    done = cli.of(["bash", "-c", line], PYTHONPATH=str(HOME))
    assert (done.returncode, done.stderr) == (0, "") and "retry.py" in done.stdout
