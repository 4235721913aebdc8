"""Has Chroma follow the published index, in a thread of the worker: nothing waits for it.

It is broken, full, away or lost: searches in mode `hybrid` and ingests do not notice. What fails
twice is deleted, and written again from the parts.
"""

import logging
import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from uuid import UUID

from django.db import Error, close_old_connections, connections

from apps.core.config import config
from apps.core.data.sqlite_files import remove_file
from apps.core.errors import CodeinfoError
from apps.core.system import disk, posix
from apps.index import changes, endings
from apps.index.installation import installation_id
from apps.index.mapped.files import Damaged
from apps.index.types import Check, never_cancelled
from apps.index.vectors import chroma
from apps.index.vectors.collections import Collections, Shard, collection_of
from apps.index.vectors.following import fingerprint, progress, searched_stores
from apps.index.vectors.note import NAME, Note
from apps.index.vectors.process import DATABASE
from apps.index.vectors.store import client, collection, folder, interrupt, reset_client
from apps.index.vectors.sync import StoreSync, drop_shards

logger = logging.getLogger("codeinfo.index")

# After a start the first searches come first.
FIRST_SECONDS = 5.0
# Other processes publish, too.
POLL_SECONDS = 10.0
# While a run is in progress.
BUSY_SECONDS = 1.0
# After an attempt that failed; each further one waits twice as long.
RETRY_SECONDS, MAX_RETRY_SECONDS = 15.0, 1_800.0
# What reading a spoilt part or note may raise, beside errors of SQLite.
_SPOILT = (Damaged, ArithmeticError, LookupError, TypeError, ValueError)
# How long `stop` waits for a server that does not answer.
STOP_SECONDS = 5.0
# After so many failures in a row, all is written again.
FAILURES = 2


def follow(check: Check = never_cancelled) -> None:
    """Bring Chroma in line with what is published.

    check: called before each write

    Raises GiveWay if another process does so, Unavailable CHROMA_UNAVAILABLE, chroma.Failed,
    sqlite3.Error, OSError, django.db.Error, and as `check`.
    """
    stores = searched_stores()
    wanted = fingerprint(root for roots in stores.values() for root in roots)
    with _alone(), closing(Note(folder())) as note:
        is_there = _is_there(note)
        has_all = is_there and note.followed() == wanted
        if has_all and progress.state.followed == wanted:
            return
        syncs = {
            store: StoreSync(store, roots, client(), note, check) for store, roots in stores.items()
        }
        keys = {store: fingerprint(roots) for store, roots in stores.items()}
        has_all = has_all or not (stores or is_there)
        totals = {store: sync.total for store, sync in syncs.items()}
        progress.start({store: (n if has_all else 0, n) for store, n in totals.items()}, keys)
        if not has_all:
            note.set_followed("")
            started = time.monotonic()
            _sync(syncs, note)
            note.set_followed(wanted)
            facts = {
                "vectors": sum(totals.values()),
                "seconds": round(time.monotonic() - started, 1),
            }
            logger.info("Chroma has what is published", extra={"context": facts})
    progress.end(wanted)


@contextmanager
def _alone() -> Iterator[None]:
    """Several servers may share a data folder, with the note. Raises GiveWay, OSError."""
    folder().mkdir(parents=True, exist_ok=True)
    descriptor = posix.open_folder(folder())
    try:
        if not posix.lock(descriptor, wait=False):
            raise GiveWay
        yield
    finally:
        os.close(descriptor)


def _sync(syncs: Mapping[UUID, StoreSync], note: Note) -> None:
    shards = _own_shards()
    for name in note.shards().keys() - {name for some in shards.values() for name in some}:
        note.forget_shard(name)
    of_stores = {collection(store): sync for store, sync in syncs.items()}
    for name in shards.keys() - of_stores.keys():
        drop_shards(shards[name], client(), note)
    lost = [sync for sync in of_stores.values() if sync.lost]
    for name, sync in of_stores.items():
        if not sync.lost:
            sync.run(shards.get(name, {}))
    if lost:
        raise chroma.unavailable(f"Parts of the index cannot be read: {lost[0].lost[0]}")


def _own_shards() -> dict[str, dict[str, Shard]]:
    """Return collection → its shards in order, for the collections that are of this installation.
    Others may use a Chroma server, too."""
    prefix, own = f"{config().ingest_collection}_", installation_id()
    collections: defaultdict[str, dict[str, Shard]] = defaultdict(dict)
    shards = client().call(Collections.shards)
    for name in sorted(shards, key=lambda shard: (len(shard), shard)):
        is_own = not config().chroma_url or shards[name].about.get("installation") == own
        if name.startswith(prefix) and is_own:
            collections[collection_of(name)][name] = shards[name]
    return collections


def _is_there(note: Note) -> bool:
    """Whether Chroma's files, or all collections of which the note tells, are there. Raises as
    `follow`."""
    if not config().chroma_url:
        return (folder() / DATABASE).exists()
    found = {name: one.id for some in _own_shards().values() for name, one in some.items()}
    return found == note.shards()


def write_anew() -> None:
    """Delete all that Chroma has of this installation, so that `follow` writes it again. Raises as
    `follow`."""
    with _alone():
        if not config().chroma_url:
            client().delete_all()
            return
        for shards in _own_shards().values():
            for shard in reversed(shards):
                client().call(Collections.drop, shard)
        remove_file(folder() / NAME)


def is_in_worker() -> bool:
    """Whether the follower is a thread of the worker. In mode `vector` it is one of the server, as
    an embedded Chroma belongs to one process, which searches there; with Celery, too."""
    return config().retrieval_mode == "hybrid" and not config().celery_broker_url


class GiveWay(Exception):
    """A run has begun, another process has Chroma follow, or the server stops."""


class Follower:
    """Follows in a thread between `start` and `stop`."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = 0  # in a row, of Chroma itself
        self.retries = 0
        self._has_followed = False  # in the latest turn

    @property
    def is_idle(self) -> bool:
        """Whether it has nothing to do."""
        is_off = self._thread is None
        return is_off or (self._has_followed and not changes.chroma_due.is_set())

    def start(self) -> None:
        if config().chroma == "follow" and self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="chroma", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread. A write in progress is given up: it is repeated after the next start."""
        thread, self._thread = self._thread, None
        self._stopping.set()
        changes.chroma_due.set()
        if thread is not None:
            interrupt()
            thread.join(STOP_SECONDS)
            if thread.is_alive():
                return  # its call ends later, or with this process
        reset_client()

    def _run(self) -> None:
        pause = FIRST_SECONDS
        while True:
            # After a failure no notice shortens the pause.
            (self._stopping if self.retries else changes.chroma_due).wait(pause)
            self._has_followed = False
            changes.chroma_due.clear()
            if self._stopping.is_set():
                break
            close_old_connections()
            pause = self.turn()
        connections.close_all()

    def turn(self) -> float:
        """Follow once. Return after how many seconds to do so again."""
        try:
            failures = max(self._failures, progress.failed_searches)
            if failures >= FAILURES or client().is_inflated():
                logger.warning("Chroma is written anew")
                self._failures = progress.failed_searches = 0
                write_anew()
            self._give_way()
            follow(self._give_way)
        except GiveWay:
            return BUSY_SECONDS
        except Error as error:
            logger.warning("Chroma does not follow", extra={"context": {"reason": str(error)}})
            return POLL_SECONDS  # `/health` reports the database
        except (CodeinfoError, sqlite3.Error, OSError, *_SPOILT) as error:
            return 0 if self._stopping.is_set() else self._fail(error)
        if config().retrieval_mode == "hybrid" and not config().chroma_url:
            client().close()  # nobody here searches what it has read
        self._failures = self.retries = 0
        self._has_followed = True
        return POLL_SECONDS

    def _fail(self, error: Exception) -> float:
        if isinstance(error, chroma.Failed | sqlite3.Error) and not disk.has_no_room():
            self._failures += 1
        logger.warning("Chroma does not follow", extra={"context": {"reason": str(error)}})
        progress.end(reason=str(error))
        self.retries += 1
        pause: float = RETRY_SECONDS * 2 ** min(self.retries - 1, 10)
        return min(pause, MAX_RETRY_SECONDS)

    def _give_way(self) -> None:
        if self._stopping.is_set() or endings.running().exists():
            raise GiveWay


follower = Follower()
