"""The parse process: batches of files in on stdin, what each holds out on stdout.

A request is one JSON line `{"max_chars", "seconds", "files": [[grammar, bytes], …]}` and then the
bytes of all files together; it is read whole before any is parsed, so that neither side can block
the other. Each answer is one JSON line, in order. The end of stdin ends the process, and so does
the kernel's timer when a file takes too long: that holds inside a parser that never returns, and
after the death of the parent. The timer counts this process's own work, so that the same files are
given up on a busy machine as on an idle one.
"""

import json
import signal
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO

from apps.ingest.syntax.pieces import Cut
from apps.ingest.syntax.trees import cut_along_tree

Parse = Callable[[Sequence[str], int, str], Cut]


def serve(requests: BinaryIO, answers: BinaryIO, parse: Parse = cut_along_tree) -> None:
    """Answer requests until there are no more."""
    # Whatever the parent did to these signals, here they end the process, without a word.
    for deadly in (signal.SIGPROF, signal.SIGPIPE):
        signal.signal(deadly, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    # Ctrl-C reaches the whole group; it is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while line := requests.readline():
        request = json.loads(line)
        files = [(grammar, requests.read(size)) for grammar, size in request["files"]]
        for grammar, source in files:
            lines = source.decode("utf-8").split("\n")
            signal.setitimer(signal.ITIMER_PROF, request["seconds"])
            cut = parse(lines, request["max_chars"], grammar)
            signal.setitimer(signal.ITIMER_PROF, 0)
            answers.write(json.dumps(cut).encode() + b"\n")
            answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
