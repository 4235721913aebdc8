"""The parse process: reads batches of files from stdin and writes results to stdout.

A request is one line of JSON, `{"task", "value", "seconds", "files": [[grammar, bytes], …]}`,
followed by the bytes of all files. The task `cut` splits files (`value`: characters of a piece);
`find` finds a name (`value`); `facts` reads what the call graph needs. A request is read completely
before the first file is parsed, so that neither side blocks the other. The result for each file is
one line of JSON, in order: `[seconds of CPU time, value]`.

The process ends with stdin, or when a file takes more than `seconds` of CPU time: the kernel's
timer also ends a parser that never returns, and works after the death of the parent. CPU time makes
the limit independent of the load of the machine.
"""

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from apps.code.callgraph.extract import call_facts
from apps.code.syntax.find import occurrences
from apps.code.syntax.trees import cut_along_tree

# Takes the lines of a file, the value of the request and the grammar; returns a JSON value.
Task = Callable[[Sequence[str], Any, str], Sequence[Any]]
TASKS: Mapping[str, Task] = {"cut": cut_along_tree, "find": occurrences, "facts": call_facts}


def serve(requests: BinaryIO, answers: BinaryIO, tasks: Mapping[str, Task] = TASKS) -> None:
    """Answer requests until stdin ends."""
    # The parent may have changed the handling of these signals. Here they end the process silently.
    for number in (signal.SIGPROF, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    # Ctrl-C reaches the whole process group. The parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while line := requests.readline():
        request = json.loads(line)
        task, value = tasks[request["task"]], request["value"]
        files = [(grammar, requests.read(size)) for grammar, size in request["files"]]
        for grammar, source in files:
            lines = source.decode("utf-8").split("\n")
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])
            begun = time.process_time()
            answer = task(lines, value, grammar)
            seconds = time.process_time() - begun
            signal.setitimer(signal.ITIMER_PROF, 0)
            answers.write(json.dumps([seconds, answer]).encode() + b"\n")
            answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
