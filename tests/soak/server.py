"""The server under test: a process that is started, asked and killed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import httpx

from tests.house.sources import HOME
from tests.support import forks

STOP_SECONDS, CALL_SECONDS = 40.0, 60.0
# Of processor time, which a start does not take more of on a busy machine; and for one that waits.
START_CPU_SECONDS, START_SECONDS = 60.0, 900.0
# The helper has Chroma, or computes for a request. These of the worker are its children.
WORKER, HELPER, PARSER = "django\0worker", "apps.core.concurrency.background", "apps.code.syntax"


def patient(seconds: float) -> float:
    """As many seconds as a machine takes that has more to do than it has cores."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


class Died(Exception):
    """The server did not come up, or did not end when it was asked to."""


class Server:
    """`environ` are the variables of the product; what it writes is appended to `log`."""

    def __init__(self, port: int, environ: dict[str, str], log: Path, clock: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        self._environ = environ
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(base_url=self.url, timeout=CALL_SECONDS, trust_env=False)
        self.has_own_clock = False
        self.kills = 0  # of all its processes so far

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def launch(self, *, own_clock: bool = False) -> None:
        """Start the process, and return before it serves."""
        environ = self._environ | {"DJANGO_SETTINGS_MODULE": "codeinfo.settings"}
        self.has_own_clock = own_clock
        with self.log.open("ab") as log:
            self._process = self._clocked(environ, log) if own_clock else forks.serve(environ, log)

    def _clocked(self, environ: dict[str, str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "tests.soak.clocked", str(self._clock), "serve"],
            cwd=HOME,
            env=environ,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    def start(self, *, own_clock: bool = False) -> None:
        """Start it and wait until it answers. Raises Died."""
        self.launch(own_clock=own_clock)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._cpu_seconds() < START_CPU_SECONDS:
            if not self.alive:
                raise Died(f"the server did not start: exit status {self._status()}")
            if self.ask("GET", "/version") is not None:
                return
            time.sleep(0.05)
        self.end(signal.SIGKILL)
        raise Died("the server did not answer in time")

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response | None:
        """The response; None where there was none, since the server is not there or ended."""
        try:
            return self._client.request(method, path, json=body, timeout=patient(CALL_SECONDS))
        except httpx.TransportError:
            return None

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal and wait for the end. Raises Died."""
        if self._process is None:
            return
        if self.alive:
            self._process.send_signal(how)
            self.kills += how == signal.SIGKILL
        try:
            self._process.wait(patient(STOP_SECONDS))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise Died("the server did not end when it was asked to") from None

    def kill_children(self, what: str) -> int:
        """Kill the processes of the server and of its worker that run this module; how many there
        were."""
        killed = 0
        for pid in self._descendants():
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                if what in command:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            except OSError:
                continue
        self.kills += killed
        return killed

    def close(self) -> None:
        self._client.close()
        self.end()

    def _descendants(self) -> set[int]:
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    parents[int(entry.name)] = int(fields[1])
        found: set[int] = set()
        above = {self._process.pid} if self._process else set()
        while above:
            above = {pid for pid, parent in parents.items() if parent in above}
            found |= above
        return found

    def _cpu_seconds(self) -> float:
        """The processor time that the process has taken; 0 if it has ended."""
        try:
            stat = Path(f"/proc/{self._process.pid if self._process else 0}/stat").read_text()
        except OSError:
            return 0.0
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def _status(self) -> int | None:
        return self._process.poll() if self._process else None
