"""The parse process: batches of files in on stdin, what each holds out on stdout.

A request is one JSON line `{"task", "value", "seconds", "files": [[grammar, bytes], …]}` and then
the bytes of all files together; the task is to `cut` (the value: a piece's most characters) or to
`find` (the value: a name). It is read whole before any is parsed, so that neither side can block
the other. Each answer is one JSON line, in order. The end of stdin ends the process, and so does
the kernel's timer when a file takes too long: that holds inside a parser that never returns, and
after the death of the parent. The timer counts this process's own work, so that the same files are
given up on a busy machine as on an idle one. With `--background` it lets others go first.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from apps.code.syntax.find import occurrences
from apps.code.syntax.trees import cut_along_tree

# From the lines of a file, the value of the request and the grammar to what JSON can hold.
Task = Callable[[Sequence[str], Any, str], Sequence[Any]]
TASKS: Mapping[str, Task] = {"cut": cut_along_tree, "find": occurrences}
BACKGROUND = 10


def serve(requests: BinaryIO, answers: BinaryIO, tasks: Mapping[str, Task] = TASKS) -> None:
    """Answer requests until there are no more."""
    # Whatever the parent did to these signals, here they end the process, without a word.
    for deadly in (signal.SIGPROF, signal.SIGPIPE):
        signal.signal(deadly, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    # Ctrl-C reaches the whole group; it is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while line := requests.readline():
        request = json.loads(line)
        task, value = tasks[request["task"]], request["value"]
        files = [(grammar, requests.read(size)) for grammar, size in request["files"]]
        for grammar, source in files:
            lines = source.decode("utf-8").split("\n")
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])
            answer = task(lines, value, grammar)
            signal.setitimer(signal.ITIMER_PROF, 0)
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


if __name__ == "__main__":
    if "--background" in sys.argv:
        os.nice(BACKGROUND)
    serve(sys.stdin.buffer, sys.stdout.buffer)
