"""`subscriptions/listen` of 2026-07-28: a stream of notices that the list of resources changed.

Tools and prompts are the same while the server runs, so nothing else is offered. The list is read
again at each notice of the hub and at each heartbeat, as not all processes send notices. Earlier
revisions would need a GET stream for each client, which no endpoint has (docs/decisions.md M3).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.core.concurrency.hub import hub
from apps.core.errors import Unavailable
from apps.core.types import JSON
from apps.mcp import sse, tasks
from apps.mcp.protocol_version import ProtocolVersion
from apps.mcp.types import McpEndpoint
from apps.mcp.wire import Id

METHOD = "subscriptions/listen"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
HEARTBEAT_SECONDS = 15.0
HEARTBEAT = ":\n\n"
# Streams of this process: each is an open connection.
MAX_STREAMS = 100
# How long the end of the server waits for the last message of each stream.
CLOSING_SECONDS = 1.0


@dataclass(eq=False)
class Stream:
    """An open stream. `topic` is the one of the hub that wakes it."""

    topic: str
    is_ending: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


open_streams: set[Stream] = set()


def check(protocol: ProtocolVersion, params: Mapping[str, Any]) -> None:
    """Raise Unavailable if too many streams are open, and RpcError if the client asks for notices
    of tasks without knowing tasks."""
    if params["notifications"].get("taskIds") is not None:
        tasks.require_declared(protocol)
    if len(open_streams) >= MAX_STREAMS:
        raise Unavailable("Too many streams are open. Ask again later.", code="TOO_MANY_STREAMS")


async def frames(
    endpoint: McpEndpoint, params: Mapping[str, Any], id: Id, result: JSON
) -> AsyncIterator[str]:
    """Yield the acknowledgment, a notice at each change of the list, and heartbeats.

    result: the answer to the request, which ends the stream when the server ends
    """
    resources, wanted = endpoint.resources, params["notifications"].get("resourcesListChanged")
    version = resources.version if resources and resources.topic and wanted else None
    stream = Stream(resources.topic if resources else "")
    open_streams.add(stream)
    try:
        with hub.subscribe(stream.topic) as notices:
            listed = await version() if version else None
            agreed = {"resourcesListChanged": True} if version else {}
            yield _notice(id, "notifications/subscriptions/acknowledged", notifications=agreed)
            while not stream.is_ending:
                await notices.next_within(HEARTBEAT_SECONDS)
                now = await version() if version else None
                changed = now != listed
                yield _notice(id, "notifications/resources/list_changed") if changed else HEARTBEAT
                listed = now
        meta = {**result.get("_meta", {}), SUBSCRIPTION_ID: id}
        yield sse.event({"jsonrpc": "2.0", "id": id, "result": result | {"_meta": meta}})
    finally:
        open_streams.discard(stream)
        stream.ended.set()


async def close() -> None:
    """End all streams of this process with an answer. Called when the server ends."""
    streams = tuple(open_streams)
    for stream in streams:
        stream.is_ending = True
        hub.notify_here(stream.topic)
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            await asyncio.gather(*(stream.ended.wait() for stream in streams))
    except TimeoutError:
        return


def _notice(id: Id, method: str, **params: Any) -> str:
    meta = {"_meta": {SUBSCRIPTION_ID: id}}
    return sse.event({"jsonrpc": "2.0", "method": method, "params": meta | params})
