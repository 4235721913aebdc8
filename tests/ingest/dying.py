"""A worker that kills itself (kill -9) inside a run: `python -m tests.ingest.dying STAGE N`.

It works on the database and data folder that its environment names.
"""

import os
import signal
import sys

import django

if __name__ == "__main__":
    django.setup()

    from apps.ingest.runs import queue
    from tests.ingest.stages import Nth, hook

    stage, call = sys.argv[1], int(sys.argv[2])
    hook(stage, Nth(call, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    queue.drain()
