"""Processes that tests fork instead of starting Python: they are as those that are started."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import HOME
from tests.support import forks
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

# What a process can say of itself. Of the product it imports nothing.
SELF = """
import json, os, signal, sys, threading
print(json.dumps({
    "environ": {**os.environ},
    "arguments": sys.argv,
    "folder": os.getcwd(),
    "main": sys.modules["__main__"].__file__,
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "threads": threading.active_count(),
    "descriptors": len(os.listdir("/proc/self/fd")),
    "product": [name for name in sys.modules if name.split(".")[0] in ("apps", "codeinfo")],
}), flush=True)
sys.exit(f"ends {sys.stdin.read()}")
"""


@pytest.fixture
def told(tmp_path: Path) -> list[tuple[dict[str, object], str, int]]:
    """What a forked process says of itself, and one that is started: its output, what it writes to
    stderr, its exit status."""
    environ = {"PATH": os.environ["PATH"], "NAME": "wörter"}
    (tmp_path / "itself.py").write_text(SELF)
    command = (str(tmp_path / "itself.py"), "argument")
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    options = {"cwd": HOME, "env": environ, "text": True, **pipes}
    found = []
    for process in (
        forks.Forked(command, libraries=forks.OF_SERVER, **options),
        subprocess.Popen([sys.executable, *command], **options),
    ):
        with process:
            output, errors = process.communicate("well")
            found.append((json.loads(output), errors, process.returncode))
    return found


def test_a_process_that_is_forked_is_as_one_that_is_started(
    told: list[tuple[dict[str, object], str, int]],
) -> None:
    forked, started = told
    assert forked == started
    assert forked[1:] == ("ends well\n", 1)


def test_a_process_that_is_forked_is_killed_and_waited_for_as_a_child(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "CODEINFO_DATA_DIR": str(tmp_path / "data")}
    wait = "import threading; print('here', flush=True); threading.Event().wait()"
    process = forks.Forked(
        ("manage.py", "shell", "--no-imports", "-c", wait),
        libraries=forks.OF_SERVER,
        cwd=HOME,
        env=environ,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.read(5) == b"here\n"
        assert process.poll() is None
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_what_forks_ends_with_who_asks() -> None:
    code = (
        "from tests.support import forks; import subprocess\n"
        "done = forks.Forked(('-m', 'platform'), libraries=('json',), cwd='/', env={})\n"
        "assert done.wait() == 0\n"
        "import os, pathlib\n"
        "print(pathlib.Path(f'/proc/{os.getpid()}/task/{os.getpid()}/children').read_text())\n"
        "os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    parent = Path("/proc") / done.stdout.split()[-1]

    def gone() -> bool:
        try:
            return "\nState:\tZ" in (parent / "status").read_text()
        except OSError:
            return True

    wait_until(gone)
