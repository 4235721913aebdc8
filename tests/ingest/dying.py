"""Workers that kill themselves (kill -9) inside a run: `python -m tests.ingest.dying`.

Each line it reads is a stage and one of its calls. A worker, forked from this process that has
loaded all that takes long, works on the queue until it dies there; the answer is a line with its
exit status. All work on the database and data folder that the environment names.
"""

import os
import signal
import sys
import traceback

import django


def work(stage: str, call: int) -> None:
    recovery.OWNER = recovery.signature()
    hook(stage, Nth(call, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    queue.drain()


def forked(stage: str, call: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            work(stage, call)
        finally:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    django.setup()

    from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
    from apps.ingest.runs import queue, recovery
    from tests.ingest.stages import Nth, hook

    get_embedder(DEFAULT_MODEL).embed_query("warm")
    for line in sys.stdin:
        stage, call = line.rsplit(maxsplit=1)
        print(forked(stage, int(call)), flush=True)
