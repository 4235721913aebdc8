"""The worker process: runs, sweeps and checks in one thread, and the follower in another."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial

from apps.core.concurrency.hub import hub
from apps.core.config import config
from apps.core.data import folder_lock
from apps.core.monitoring import telemetry
from apps.core.system import crashes, posix
from apps.core.system.heap import collect_seldom, limit_arenas, settled
from apps.index import changes, endings
from apps.index.vectors.follower import follower, is_in_worker
from apps.index.vectors.following import progress
from apps.ingest.runs import journal, recovery
from apps.ingest.worker import orders, reports
from apps.ingest.worker.link import Link
from apps.ingest.worker.loop import Worker
from apps.logs.store import StoreHandler

logger = logging.getLogger("codeinfo.ingest")

# Of the worker and the processes that it starts.
NICE = 10
# How often it is looked whether the worker has ended.
LOOK_SECONDS = 1.0
STATUS_LOST = 3


def run_alone() -> None:
    """Work in this process until SIGTERM or Ctrl-C. It has the data folder locked."""
    recovery.recover()
    changes.all_due()
    _work(Worker())


def run_for_server(descriptor: int, lock: int | None, idle_seconds: float) -> None:
    """Work for a server until it has nothing to do.

    descriptor: of the socket of `link`
    lock: descriptor of the server's lock of the data folder
    idle_seconds: it ends after so long without work

    The process ends at once when the server does. What a killed server and worker leave is undone
    by the next start, as always.
    """
    link = Link(socket.socket(fileno=descriptor))
    if lock is not None:
        folder_lock.inherit(lock)
    _report_to(link)
    threading.Thread(target=_obey, args=(link,), name="server", daemon=True).start()
    link.call(reports.started, recovery.OWNER)

    worker, obeyed = Worker(), 0

    def is_over() -> bool:
        nonlocal obeyed
        obeyed = orders.received  # what follows tells whether these were obeyed
        return worker.idle_seconds() >= idle_seconds and follower.is_idle

    if _work(worker, is_over):
        link.call(reports.ending, obeyed)


def _obey(link: Link) -> None:
    try:
        link.serve()
    finally:
        os._exit(STATUS_LOST)


def _work(worker: Worker, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Work until a signal, or until `is_over`. Return whether it was over."""
    # Searches and other programs come first. Its processes have the same priority.
    posix.lower_priority(NICE)
    crashes.record()
    limit_arenas()
    collect_seldom()
    settled()  # else a tenth of a run's processor time is spent on what imports leave
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *received: stopping.set())
    telemetry.start(config())
    ended = threading.Event()

    def run() -> None:
        worker.run(is_over)
        ended.set()

    threading.excepthook = _log
    thread = threading.Thread(target=run, name="worker", daemon=True)
    thread.start()
    if is_in_worker():
        follower.start()
    while thread.is_alive() and not stopping.wait(LOOK_SECONDS):
        pass
    worker.end()
    thread.join()
    if not ended.is_set():
        sys.exit(STATUS_LOST)
    follower.stop()
    telemetry.stop()
    return not stopping.is_set()


def _log(failed: threading.ExceptHookArgs) -> None:
    facts = {"thread": failed.thread.name if failed.thread else ""}
    logger.error(
        "a thread of the worker failed", exc_info=failed.exc_value, extra={"context": facts}
    )


def _report_to(link: Link) -> None:
    """Send log entries, notices and ends of runs to the server."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, StoreHandler):
            handler.forward = lambda entry: link.call(reports.logged, entry)
    journal.also = lambda *ended: link.call(journal.count, *ended)
    hub.relays.add(partial(_changed, link))
    telemetry.also = lambda name, seconds: link.call(telemetry.count, name, seconds)


def _changed(link: Link, topic: str, key: str) -> None:
    """Send a notice, and what the server shows of it that is not in a row."""
    if topic == changes.RUNS and endings.unsaved:
        link.call(reports.not_saved, dict(endings.unsaved))
    if topic == changes.CHROMA:
        link.call(reports.followed, progress.state)
    else:
        link.call(reports.changed, topic, key)
