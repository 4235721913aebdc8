"""The first question in a folder that is not ingested, over `codeinfo mcp`.

    python -m benchmarks.first_use FOLDER [--files 100 1000 5000] [--rounds N] [--think SECONDS]

For each number of files, a new git repository gets as many of FOLDER, and `codeinfo mcp` starts in
it, with an empty data folder: once beside a server that runs, once without. The client lists the
tools, waits as long as a model thinks, and calls Grep and VectorSearch at the same time; it repeats
both until no answer is `partial`. Seconds are from the calls on, those to the tools from the start
of the client. "processor" are the processor seconds of all processes from there to the first rows
of both tools, and to the whole answers. Prints one table, the medians.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.product import HERE, environment, serving
from codeinfo_cli import server

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}
END_SECONDS, PAUSE_SECONDS = 60, 0.5
TICKS = os.sysconf("SC_CLK_TCK")
CALLS = {
    "Grep": {"pattern": "def |class |function ", "limit": 5},
    "VectorSearch": {"query": "where is the configuration read", "limit": 5},
}


@dataclass
class Times:
    """Seconds of one round: to the list of tools, to the first rows of each tool, to whole answers;
    processor seconds to the first rows of both, and to whole answers."""

    listed: float
    first: dict[str, float]
    whole: float
    processor_first: float
    processor_whole: float


class Client:
    """The client's end of `codeinfo mcp`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._next = 0

    def send(self, method: str, params: Mapping[str, Any]) -> int:
        self._next += 1
        self._write({"id": self._next, "method": method, "params": params})
        return self._next

    def notify(self, method: str) -> None:
        self._write({"method": method})

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self) -> tuple[int, dict[str, Any]]:
        """The id and the result of the next answer. Raises RuntimeError for an error."""
        assert self._process.stdout
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if "error" in message:
                raise RuntimeError(str(message["error"]))
            if "result" in message:
                return message["id"], message["result"]
        raise RuntimeError("codeinfo mcp has ended")


def main() -> None:
    options = arguments()
    print("| files | server | tools | Grep | VectorSearch | whole | processor: first, whole |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for files in options.files:
        for is_running in (True, False):
            rounds = [
                one_round(options.folder, files, is_running, options.think)
                for _ in range(options.rounds)
            ]
            cells = [
                f"{median(one.listed for one in rounds):.2f}",
                *(f"{median(one.first[tool] for one in rounds):.2f}" for tool in CALLS),
                f"{median(one.whole for one in rounds):.2f}",
                f"{median(one.processor_first for one in rounds):.1f}, "
                f"{median(one.processor_whole for one in rounds):.1f}",
            ]
            state = "runs" if is_running else "starts"
            print(f"| {files} | {state} | {' | '.join(cells)} |", flush=True)


def one_round(source: Path, files: int, is_running: bool, think: float) -> Times:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name) / "base"
        folder = repository(source, base / "project", files)
        data = Path(name) / "data"
        variables = environment(data, [base])
        with (
            serving(data, [base]) if is_running else nullcontext(),
            client(folder, variables) as speaker,
        ):
            result = times(speaker, think)
        server.wait_for_end(data, END_SECONDS)
        return result


def times(speaker: Client, think: float) -> Times:
    used, began = processor(), time.monotonic()
    speaker.send("initialize", HELLO)
    speaker.answer()
    speaker.notify("notifications/initialized")
    speaker.send("tools/list", {})
    speaker.answer()
    listed = time.monotonic() - began
    time.sleep(think)
    asked = time.monotonic()
    first: dict[str, float] = {}
    used_first = 0.0
    waiting = call(speaker, CALLS)
    while waiting:
        id, result = speaker.answer()
        tool, content = waiting.pop(id), result["structuredContent"]
        rows = content.get("results")
        if rows and tool not in first:
            first[tool] = time.monotonic() - asked
            used_first = processor() - used
        if not rows or "partial" in content:
            time.sleep(PAUSE_SECONDS)
            waiting |= call(speaker, {tool: CALLS[tool]})
    whole = time.monotonic() - asked
    return Times(listed, first, whole, used_first, processor() - used)


def call(speaker: Client, calls: Mapping[str, Any]) -> dict[int, str]:
    return {
        speaker.send("tools/call", {"name": tool, "arguments": given}): tool
        for tool, given in calls.items()
    }


@contextmanager
def client(folder: Path, variables: Mapping[str, str]) -> Iterator[Client]:
    command = [sys.executable, "-P", str(HERE / "codeinfo_cli" / "__main__.py"), "mcp"]
    env, pipe = os.environ | dict(variables), subprocess.PIPE
    # The end of the block closes its input, with which it ends.
    with subprocess.Popen(command, env=env, cwd=folder, stdin=pipe, stdout=pipe) as process:
        yield Client(process)


def repository(source: Path, folder: Path, files: int) -> Path:
    """A new git repository with the first files of another."""
    listed = subprocess.run(
        ["git", "-C", str(source), "ls-files", "-z"], capture_output=True, check=True
    ).stdout.decode()
    names = [name for name in listed.split("\0") if name and (source / name).is_file()]
    # Evenly over the tree, so that fewer files are as many of each kind.
    for name in names[:: max(1, len(names) // files)][:files]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, folder / name)
    author = ["-c", "user.name=b", "-c", "user.email=b@localhost"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "First"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    return folder


def processor() -> float:
    """The processor seconds of all processes below this one, with those that have ended there."""
    parents, seconds = dict[int, int](), dict[int, float]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(") ")[2].split()
            pid = int(path.parent.name)
            parents[pid] = int(fields[1])
            seconds[pid] = sum(map(int, fields[11:15])) / TICKS
    below, level = 0.0, [os.getpid()]
    while level:
        level = [pid for pid, parent in parents.items() if parent in level]
        below += sum(seconds[pid] for pid in level)
    return below


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--files", nargs="+", type=int, default=[100, 1_000, 5_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--think", type=float, default=0.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
