"""The server's side: a thread performs the verb, one at a time; others get BUSY."""

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

from django.db import DatabaseError, connections
from django.http import HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_POST

from apps.core.concurrency.tasks import call_in_loop
from apps.core.errors import CodeinfoError, Conflict, InvalidInput, Unavailable
from apps.core.security.authentication import refuse_all_but_commands
from apps.index.types import Check
from apps.ingest.runs.job import RunCancelled
from apps.site.control.verbs import VERBS, Options, Report

logger = logging.getLogger("codeinfo.site")

# The client takes longer silence for a server that is lost.
HEARTBEAT_SECONDS = 15.0
STOP_SECONDS = 15.0

_working = threading.Lock()
stopping = threading.Event()


@require_POST
async def control(request: HttpRequest, verb: str) -> StreamingHttpResponse:
    """Raises InvalidInput."""
    refuse_all_but_commands(request.headers.get("Authorization", ""))
    try:
        options = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("The body must be JSON.") from error
    if not isinstance(options, dict):
        raise InvalidInput("The body must be an object.")
    return StreamingHttpResponse(_events(verb, options), content_type="text/event-stream")


def stop() -> None:
    """Cancel the work, and wait for its end."""
    stopping.set()
    if _working.acquire(timeout=STOP_SECONDS):
        _working.release()


async def _events(verb: str, options: Options) -> AsyncIterator[str]:
    """Yield the events. The work is cancelled when this generator is closed, as happens when the
    client disconnects."""
    loop = asyncio.get_running_loop()
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    is_left = threading.Event()

    def send(message: dict[str, Any]) -> None:
        call_in_loop(loop, messages.put_nowait, message)

    def check() -> None:
        if stopping.is_set() or is_left.is_set():
            raise RunCancelled

    def work() -> None:
        send(_answer(verb, options, check, lambda text: send({"progress": text})))

    threading.Thread(target=work, name="control", daemon=True).start()
    try:
        message: dict[str, Any] = {"progress": ""}
        while "progress" in message:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    message = await messages.get()
            except TimeoutError:
                yield ":\n\n"
            else:
                yield f"data: {json.dumps(message)}\n\n"
    finally:
        is_left.set()


def _answer(verb: str, options: Options, check: Check, report: Report) -> dict[str, Any]:
    if not _working.acquire(blocking=False):
        return _error(Conflict("The server is at work on another command.", code="BUSY"))
    try:
        logger.info("control", extra={"context": {"verb": verb}})
        if verb not in VERBS:
            raise InvalidInput("This version knows no such request")
        return {"result": VERBS[verb](options, check, report)}
    except RunCancelled:
        return _error(Conflict("The server stopped, or the client left.", code="STOPPED"))
    except CodeinfoError as error:
        return _error(error)
    except (DatabaseError, OSError) as error:
        logger.warning("control failed", exc_info=error)
        return _error(Unavailable(f"{type(error).__name__}: {error}", code="FAILED"))
    finally:
        connections.close_all()
        _working.release()


def _error(error: CodeinfoError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": error.message}}
