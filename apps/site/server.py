"""The server process: daphne, its worker, and a graceful shutdown."""

import asyncio
import codecs
import gc
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from daphne.server import Server
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.tcp import Port

from apps.agent_runs import commands
from apps.conversations import sharing
from apps.core import __version__
from apps.core.concurrency import computed
from apps.core.concurrency.hub import hub
from apps.core.config import Config, config
from apps.core.data import database
from apps.core.errors import CodeinfoError
from apps.core.monitoring import telemetry
from apps.core.monitoring.watchdog import Watchdog
from apps.core.security import local_users
from apps.core.system import crashes, mapping
from apps.core.system.heap import limit_arenas, settled, trim
from apps.index.parsing.finder import reset_finder
from apps.index.scrubbed import DAY_SECONDS
from apps.index.vectors.follower import follower, is_in_worker
from apps.ingest.runs import submit
from apps.ingest.watching import watcher
from apps.ingest.worker.supervisor import supervisor
from apps.mcp import subscriptions
from apps.retrieval import following, search
from apps.retrieval.search_processes import search_processes
from apps.site import requests, sockets, standby
from apps.site.connections import most_files
from apps.site.control import api as control
from apps.site.idle import IdleStop
from apps.site.server_file import ServerFile

logger = logging.getLogger("codeinfo.site")

# docs/contract.md §2.5: a ping every 30 s; closed after two without an answer.
PING_SECONDS, PONG_SECONDS = 30, 60
# Python's switch interval. With the default of 5 ms, threads that write rows wait at each statement
# while the event loop is busy. With 50 concurrent answers, this value reduced the time to the first
# word by 40 %.
SWITCH_SECONDS = 0.0005
# The first search after a start and the worker's check of the index both read much of it. The check
# waits so long for the search.
WARM_UP_SECONDS = 30.0


def port_problem(address: str, port: int) -> str:
    """Return why a port cannot be used; "" if it can."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def ports(config: Config) -> dict[str, int]:
    """Return variable → port."""
    return {
        "PORT": config.port,
        "MCP_PORT": config.mcp_port,
        "AGENTS_MCP_PORT": config.agents_mcp_port,
    }


def endpoints(config: Config) -> list[str]:
    """Return the ports as Twisted's endpoint strings.

    Raises CommandError, with the variable to set, if a port cannot be used.
    """
    named = ports(config)
    if len(set(named.values())) < len(named):
        raise CommandError(f"These must differ: {named}")
    for variable, port in named.items():
        if problem := port_problem(config.bind, port):
            raise CommandError(
                f"Port {port} cannot be used ({problem}): stop what is there, or set {variable}"
            )
    address = config.bind.replace(":", r"\:")
    return [f"tcp:port={port}:interface={address}" for port in named.values()]


def ending(while_serving: AsyncExitStack) -> "Deferred[None]":
    """End what is computed for requests, and live answers, and save their text. Twisted waits for
    the result before it stops."""

    async def end() -> None:
        computed.places.stop()
        await commands.shutdown()
        await while_serving.aclose()

    return Deferred.fromFuture(asyncio.ensure_future(end()))


def begin(while_serving: AsyncExitStack) -> "Deferred[None]":
    """Start to map what is published and, with Redis, the relay of notices. Prepare for
    the first search.

    Streams of MCP that listen for changes end with an answer.
    """

    async def relay() -> None:
        while_serving.push_async_callback(subscriptions.close)
        for work in (following.follow_changes(), warm_up(), delete_expired_copies()):
            while_serving.callback(asyncio.create_task(work).cancel)
        if config().redis_url:
            from apps.site.relay import Relay  # noqa: PLC0415 - needs a package that is an extra

            await while_serving.enter_async_context(Relay(hub, get_channel_layer()).running())

    return Deferred.fromFuture(asyncio.ensure_future(relay()))


async def warm_up() -> None:
    """Make the first search as fast as later ones."""
    try:
        await database_sync_to_async(search.warm_up, thread_sensitive=False)()
    except (CodeinfoError, DatabaseError) as error:
        logger.warning("searches are not prepared", extra={"context": {"reason": str(error)}})
    finally:
        submit.wake()


async def delete_expired_copies() -> None:
    """Delete the copies of conversations whose links have expired, now and once a day."""
    while True:
        with suppress(DatabaseError):  # `/health` tells of it
            await database_sync_to_async(sharing.delete_expired, thread_sensitive=False)()
        await asyncio.sleep(DAY_SECONDS)


def facts() -> dict[str, object]:
    """Return the facts of the log entry "server start"."""
    settings = config()
    return {
        "version": __version__,
        "bind": settings.bind,
        "ports": [settings.port, settings.mcp_port, settings.agents_mcp_port],
        "localUsers": local_users.rule(settings),
        "database": connection.vendor,
        "chroma": "off" if settings.chroma == "off" else settings.chroma_url or "embedded",
        "redis": bool(settings.redis_url),
        "openFiles": most_files(),
    }


def _watchdog() -> Watchdog:
    """Return the watchdog. While the event loop is stalled, it responds on PORT (`standby`)."""
    listeners = (reader for reader in reactor.getReaders() if isinstance(reader, Port))
    main = next(listener for listener in listeners if listener.getHost().port == config().port)
    return Watchdog(reactor._asyncioEventloop, partial(standby.answer, main.socket))


class BoundedServer(Server):
    """Daphne's server, with flow control: an application that sends waits for a slow reader."""

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        await super().handle_reply(protocol, message)
        await protocol.drained()


def run(application: object, listen_on: Sequence[str], on_ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; then end live answers and the worker, and return."""
    crashes.record()
    crashes.log_earlier()
    mapping.survive()
    # Imported now: Django logs answers of 500 and more with it, also where no file can be opened.
    codecs.lookup("unicode_escape")
    limit_arenas()
    sys.setswitchinterval(SWITCH_SECONDS)
    requests.install()
    sockets.install()
    telemetry.start(config())
    server = BoundedServer(
        application=application,
        endpoints=list(listen_on),
        ping_interval=PING_SECONDS,
        ping_timeout=PONG_SECONDS,
        # `sockets` limits received messages. These limits would also apply to sent ones.
        websocket_max_message_size=0,
        websocket_max_frame_size=0,
        server_name="codeinfo",
        verbosity=0,
    )

    file = ServerFile(config())

    def ready() -> None:
        standby.watchdog = _watchdog()
        reactor.callWhenRunning(standby.watchdog.start)
        if seconds := config().idle_stop_seconds:
            idle = IdleStop(config().data_dir, seconds, server.http_factory.open, file.remove)
            reactor.callWhenRunning(idle.start)
        file.write()
        on_ready()

    server.ready_callable = ready
    while_serving = AsyncExitStack()
    reactor.callWhenRunning(begin, while_serving)
    reactor.addSystemEventTrigger("before", "shutdown", ending, while_serving)
    logger.info("server start", extra={"context": facts()})
    supervisor.start(WARM_UP_SECONDS)
    if not is_in_worker():
        follower.start()
    watcher.start()
    gc.collect()
    settled()
    try:
        server.run()
    finally:
        file.remove()
        if standby.watchdog is not None:
            standby.watchdog.stop()
        control.stop()
        _stop_threads()
        # Last, as what ends above writes rows.
        database.fold_log("TRUNCATE")
        logger.info("server stopped")


def _stop_threads() -> None:
    """End the worker, and all other threads and processes of the server."""
    supervisor.stop()
    watcher.stop()
    reset_finder()
    search_processes.stop()
    follower.stop()
    telemetry.stop()
    trim.stop()
