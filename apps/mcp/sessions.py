"""Sessions of the handshake revisions: they name the calls that a client may cancel.

A session is a signed random id with the client's name, returned by `initialize`. Nothing is stored
for it, so it outlasts
a restart, and there is no number to bound. `notifications/cancelled` ends the calls of its session
that have the given request id, in every process of the server. A client without an id, or with an
expired one, is served, too, but can end its calls only by closing the connection.
"""

import asyncio
import base64
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from django.core.signing import BadSignature, TimestampSigner

from apps.core.concurrency.hub import hub
from apps.core.concurrency.tasks import create_task
from apps.core.principal import current
from apps.mcp.wire import Id, Message

HEADER = "Mcp-Session-Id"
CANCELLED = "mcp.cancelled"
MAX_ID = 400
MAX_AGE_SECONDS = 30 * 24 * 3600
# A notification can overtake the call that it cancels.
EARLY_SECONDS, MAX_EARLY = 5.0, 1_000


class CallCancelled(Exception):
    """The client has cancelled the call."""


_signer = TimestampSigner(salt="apps.mcp.sessions")
# Key of a call → time of its cancellation, oldest first.
early: OrderedDict[str, float] = OrderedDict()


def new_id(client: str = "") -> str:
    """client: the name that the client gives itself, of at most 48 characters"""
    name = base64.urlsafe_b64encode(client.encode(errors="replace")).decode().rstrip("=")
    return _signer.sign(f"{uuid.uuid4().hex}.{name}")


def client_of(headers: Mapping[str, str]) -> str:
    """Return the name of the client that opened a session; "" without one."""
    _, _, name = _session_of(headers).partition(".")
    return base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()


def key_of(headers: Mapping[str, str], request_id: Id) -> str:
    """Return the key of a call; "" if the request has no session."""
    if not (session := _session_of(headers)):
        return ""
    principal = current()
    return json.dumps([principal.kind, str(principal.user_id), session, request_id])


def _session_of(headers: Mapping[str, str]) -> str:
    """Return the session of a request without its signature; "" without a valid one."""
    session = headers.get(HEADER, "")
    try:
        return _signer.unsign(session, max_age=MAX_AGE_SECONDS) if len(session) <= MAX_ID else ""
    except BadSignature:
        return ""


def notified(message: Message, headers: Mapping[str, str]) -> None:
    """Handle a notification of a client: cancel the call that `notifications/cancelled` names."""
    request_id = message.params.get("requestId")
    if message.method != "notifications/cancelled" or not isinstance(request_id, int | str):
        return
    if key := key_of(headers, request_id):
        early[key] = time.monotonic()
        if len(early) > MAX_EARLY:
            early.popitem(last=False)
        hub.notify(CANCELLED, key)


@asynccontextmanager
async def cancellable(key: str) -> AsyncIterator[None]:
    """Cancel the block if the client cancels the call `key`, and raise CallCancelled."""
    if not key:
        yield
        return
    try:
        async with asyncio.timeout(None) as scope:
            watcher = create_task(_expire_when_cancelled(key, scope))
            try:
                yield
            finally:
                watcher.cancel()
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise CallCancelled from error
    finally:
        early.pop(key, None)


async def _expire_when_cancelled(key: str, scope: asyncio.Timeout) -> None:
    with hub.subscribe(CANCELLED) as notices:
        if time.monotonic() - early.get(key, -EARLY_SECONDS) >= EARLY_SECONDS:
            async for cancelled in notices:
                if cancelled == key:
                    break
        scope.reschedule(asyncio.get_running_loop().time())
