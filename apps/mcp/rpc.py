"""The view of an endpoint: one POST, one JSON-RPC message, one answer.

A call may be long. Its caller hears of progress over an event stream, if it asked for that; and if
the caller's connection closes, Django cancels the task that serves it, stream or not, and with it
the tool.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    QueryDict,
    StreamingHttpResponse,
)
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    methods,
)
from pydantic import ValidationError

from apps.core.error_map import typed
from apps.core.errors import CodeinfoError
from apps.core.rate_limits import address_of, check_rate
from apps.core.types import JSON
from apps.logs.context import request_id
from apps.mcp import failures, guard, sse, wire
from apps.mcp.calls import no_progress, prepare, tool_named
from apps.mcp.methods import in_modern_words, methods_of, pass_gate, progress_token
from apps.mcp.protocol_version import ProtocolVersion, protocol_version_of
from apps.mcp.types import McpEndpoint, Report
from apps.mcp.wire import Message, RpcError

logger = logging.getLogger("codeinfo.mcp")

T = TypeVar("T")
Work = Callable[[Report], Awaitable[JSON]]
View = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponseBase]]
Narrow = Callable[[McpEndpoint, QueryDict], McpEndpoint]

# Stateless clients read the kind of an error from the HTTP status, too; older ones expect 200.
STATELESS_STATUS = {
    INVALID_PARAMS: 400,
    MISSING_REQUIRED_CLIENT_CAPABILITY: 400,
    METHOD_NOT_FOUND: 404,
    503: 503,
}
ALWAYS_BAD = (PARSE_ERROR, INVALID_REQUEST)
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


@dataclass(frozen=True)
class Reply:
    """The answer to a message, and the HTTP status it comes with."""

    body: JSON
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def as_response(self) -> HttpResponse:
        text = json.dumps(self.body, allow_nan=False)
        return HttpResponse(
            text, content_type="application/json", status=self.status, headers=self.headers
        )


@dataclass
class Exchange:
    """One message on its way to its answer, known better step by step; logged once, at its end."""

    endpoint: McpEndpoint
    message: Message | None = None
    protocol: ProtocolVersion | None = None
    tool: str = ""
    method: str = ""
    started: float = field(default_factory=time.perf_counter)

    @property
    def id(self) -> wire.Id | None:
        return self.message.id if self.message else None

    def end(self, outcome: str, code: str | int = "") -> None:
        """One entry in the log: what it was and how it went, never what was said."""
        context = {
            "endpoint": self.endpoint.title,
            "method": self.method,
            "tool": self.tool,
            "version": self.protocol.version if self.protocol else "",
            "outcome": outcome,
            "code": code,
            "ms": round((time.perf_counter() - self.started) * 1000, 1),
        }
        known = {name: value for name, value in context.items() if value != ""}
        logger.info("mcp tool call" if self.tool else "mcp message", extra={"context": known})


def serve(endpoint: McpEndpoint, narrow: Narrow | None = None) -> View:
    """The view that answers for an endpoint, or for the part of it that an address asks for."""

    async def view(request: HttpRequest) -> HttpResponseBase:
        exchange = Exchange(narrow(endpoint, request.GET) if narrow else endpoint)
        work = await _attempt(exchange, _understand(exchange, request))
        if isinstance(work, Reply):
            return work.as_response()
        if work is None:
            exchange.end("ok")
            return HttpResponse(status=202)
        token = _streams_to(exchange, request)
        if token is None:
            return (await _reply(exchange, work, no_progress)).as_response()
        return _stream(exchange, work, token)

    return view


async def _understand(exchange: Exchange, request: HttpRequest) -> Work | None:
    """The work that a request asks for; None where it is a notification, which asks for nothing.

    Raises RpcError, and what is wrong with a call's arguments.
    """
    body = guard.body_of(request)
    message = exchange.message = wire.parse(body)
    protocol = exchange.protocol = protocol_version_of(message, request.headers)
    if message.is_notification:
        exchange.method = "notification"
        return None
    if message.method != "tools/call" and message.method not in methods_of(protocol):
        raise RpcError(METHOD_NOT_FOUND, "Method not found")
    exchange.method = message.method
    _check_params(message, protocol)
    call = message.method == "tools/call"
    if call:
        work = await _tool_call(exchange, message, protocol, address_of(request))
    else:
        work = _lookup(exchange, message, protocol)

    async def finalised(report: Report) -> JSON:
        return _finalise(exchange, protocol, await work(report))

    return finalised


def _lookup(exchange: Exchange, message: Message, protocol: ProtocolVersion) -> Work:
    async def answer(report: Report) -> JSON:
        return await methods_of(protocol)[message.method](exchange.endpoint, protocol, message)

    return answer


async def _tool_call(
    exchange: Exchange, message: Message, protocol: ProtocolVersion, address: str
) -> Work:
    await pass_gate(exchange.endpoint, protocol)
    tool = tool_named(exchange.endpoint, message)
    exchange.tool = tool.name
    check_rate("api", address)
    return prepare(tool, message, protocol).run


def _check_params(message: Message, protocol: ProtocolVersion) -> None:
    try:
        methods.validate_client_request(message.method, protocol.version, message.params)
    except KeyError:
        # A method of our own, which takes no parameters.
        return
    except ValidationError as error:
        places = {".".join(map(str, problem["loc"])) for problem in error.errors()}
        details = {"details": [f"{place} is missing or wrong" for place in sorted(places)]}
        raise RpcError(INVALID_PARAMS, "Invalid params", data=details) from None


def _streams_to(exchange: Exchange, request: HttpRequest) -> int | str | None:
    """The token to stream progress under; None: the answer is one JSON object."""
    if not exchange.tool or exchange.message is None:
        return None
    if "text/event-stream" not in request.headers.get("Accept", ""):
        return None
    return progress_token(exchange.message.params)


def _stream(exchange: Exchange, work: Work, token: int | str) -> StreamingHttpResponse:
    async def answer(report: Report) -> JSON:
        return (await _reply(exchange, work, report)).body

    # The stream outlives the request's own context, with its id.
    frames = sse.frames(token, answer, copy_context())
    return StreamingHttpResponse(
        frames, content_type="text/event-stream", headers=dict(STREAM_HEADERS)
    )


async def _reply(exchange: Exchange, work: Work, report: Report) -> Reply:
    """The answer to a request that has been understood."""
    reply = await _attempt(exchange, work(report))
    if not isinstance(reply, Reply):
        exchange.end("ok")
        reply = Reply(wire.success(exchange.id, reply))
    return reply


def _finalise(exchange: Exchange, protocol: ProtocolVersion, result: JSON) -> JSON:
    """A result as its revision has it: what that does not know is left out."""
    if protocol.modern:
        result = in_modern_words(exchange.endpoint, result)
    try:
        return methods.serialize_server_result(exchange.method, protocol.version, result)
    except KeyError:
        return result


async def _attempt(exchange: Exchange, work: Awaitable[T]) -> T | Reply:
    """What `work` returns or, where it fails, the answer and the entry in the log for that."""
    try:
        return await work
    except asyncio.CancelledError:
        exchange.end("cancelled")
        raise
    except RpcError as error:
        return _refusal(exchange, error)
    except Exception as error:
        failure = typed(error)
        if failure is None:
            logger.exception("mcp message failed")
            told = f"The server failed. Its log has the reason under {request_id.get()}."
            failure = CodeinfoError(told, code="INTERNAL_ERROR")
        return _failure(exchange, failure)


def _failure(exchange: Exchange, error: CodeinfoError) -> Reply:
    """A failed tool is told as its revision wants it; anything else is a JSON-RPC error."""
    if not exchange.tool or exchange.protocol is None:
        return _refusal(exchange, failures.rpc_error(error), error.code)
    try:
        told = exchange.endpoint.tool_errors_as_results or exchange.protocol.tool_errors_as_results
        failure = failures.tool_failure(error, exchange.protocol, told=told)
        result = _finalise(exchange, exchange.protocol, failure)
    except RpcError as refusal:
        return _refusal(exchange, refusal, error.code)
    exchange.end("failed", error.code)
    return Reply(wire.success(exchange.id, result))


def _refusal(exchange: Exchange, error: RpcError, word: str = "") -> Reply:
    exchange.end("failed" if word else "refused", word or error.code)
    id = error.id if exchange.id is None else exchange.id
    return Reply(error.as_wire(id), _status(exchange, error), error.headers)


def _status(exchange: Exchange, error: RpcError) -> int:
    if error.status is not None:
        return error.status
    if exchange.protocol is not None and exchange.protocol.modern:
        return STATELESS_STATUS.get(error.code, 200)
    return 400 if error.code in ALWAYS_BAD else 200
