"""The view of an endpoint: one POST, one JSON-RPC message, one answer.

A long call reports progress over an event stream if the client asked for that, or becomes a task if
the client knows tasks; otherwise white space precedes its answer. When the client's connection
closes, Django cancels the task that serves it, and with it the tool, unless that is a task.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    QueryDict,
    StreamingHttpResponse,
)
from mcp_types import (
    CLIENT_INFO_META_KEY,
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
from apps.core.security.rate_limits import address_of, check_rate
from apps.core.types import JSON
from apps.logs.context import request_id
from apps.mcp import (
    blocking,
    client_calls,
    failures,
    guard,
    sessions,
    sse,
    subscriptions,
    tasks,
    wire,
)
from apps.mcp.calls import no_progress, prepare, tool_named
from apps.mcp.methods import methods_of, pass_gate, progress_token, stateless_result
from apps.mcp.protocol_version import ProtocolVersion, protocol_version_of
from apps.mcp.sessions import CallCancelled
from apps.mcp.types import McpEndpoint, McpTool, Report
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
# As in the Language Server Protocol; MCP defines no code for it.
REQUEST_CANCELLED = -32800
ALWAYS_BAD = (PARSE_ERROR, INVALID_REQUEST)
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
EVENT_STREAM = "text/event-stream"
# Methods besides tools/call that count against CODEINFO_API_RATE: they read the index.
LIMITED = ("resources/read", "prompts/get", "completion/complete", subscriptions.METHOD)


@dataclass(frozen=True)
class Reply:
    """The JSON-RPC answer to a message, with its HTTP status and headers."""

    body: JSON
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def as_text(self) -> str:
        return json.dumps(self.body, allow_nan=False)

    def as_response(self) -> HttpResponse:
        return HttpResponse(
            self.as_text(),
            content_type="application/json",
            status=self.status,
            headers=self.headers,
        )


@dataclass
class Exchange:
    """The state of one request. Its fields are filled in as it is parsed; `end` logs it once.

    endpoint: narrowed by the address once the message is parsed.
    message: None until the body is parsed.
    protocol: None until the revision is known.
    tool: the called tool; None for other methods.
    is_task: the call answers with a task.
    method: "" until it is known, "notification" for all notifications.
    client: the name that the client gives itself; "" if unknown.
    started: `time.perf_counter()` at the start.
    """

    endpoint: McpEndpoint
    message: Message | None = None
    protocol: ProtocolVersion | None = None
    tool: McpTool | None = None
    is_task: bool = False
    method: str = ""
    client: str = ""
    started: float = field(default_factory=time.perf_counter)

    @property
    def id(self) -> wire.Id | None:
        return self.message.id if self.message else None

    def end(self, outcome: str, code: str | int = "") -> None:
        """Log the method and its outcome, without arguments or texts (contract.md §4.6)."""
        context = {
            "endpoint": self.endpoint.title,
            "method": self.method,
            "tool": self.tool.name if self.tool else "",
            "version": self.protocol.version if self.protocol else "",
            "outcome": outcome,
            "code": code,
            "ms": round((time.perf_counter() - self.started) * 1000, 1),
        }
        if self.method and self.method != "notification":
            call = self.tool.name if self.tool else self.method
            client_calls.record(self.client, self.endpoint.title, call)
        present = {name: value for name, value in context.items() if value != ""}
        logger.info("mcp tool call" if self.tool else "mcp message", extra={"context": present})


def serve(endpoint: McpEndpoint, narrow: Narrow | None = None) -> View:
    """Return the view of an endpoint. `narrow` reduces the endpoint to a request's query string."""

    async def view(request: HttpRequest) -> HttpResponseBase:
        exchange = Exchange(endpoint)
        work = await _attempt(exchange, _read_request(exchange, request, narrow))
        if isinstance(work, Reply):
            return work.as_response()
        if work is None:
            exchange.end("ok")
            return HttpResponse(status=202)
        if exchange.method == subscriptions.METHOD:
            return _listen(exchange)
        if not exchange.tool:
            return (await _reply(exchange, work, no_progress)).as_response()
        if exchange.is_task:
            return _task(exchange, work).as_response()
        token = _stream_token(exchange, request)
        return await _blocking(exchange, work) if token is None else _stream(exchange, work, token)

    return view


async def _read_request(
    exchange: Exchange, request: HttpRequest, narrow: Narrow | None
) -> Work | None:
    """Parse a request and return the work that answers it; None for a notification.

    Raises RpcError, and InvalidInput for wrong arguments of a tool and for a wrong query string.
    """
    body = guard.body_of(request)
    message = exchange.message = wire.parse(body)
    protocol = exchange.protocol = protocol_version_of(message, request.headers)
    if message.is_notification:
        exchange.method = "notification"
        sessions.notified(message, request.headers)
        return None
    if narrow is not None:
        exchange.endpoint = narrow(exchange.endpoint, request.GET)
    if not _is_known(exchange.endpoint, message, protocol):
        raise RpcError(METHOD_NOT_FOUND, "Method not found")
    exchange.method = message.method
    _check_params(message, protocol)
    if message.method in LIMITED:
        check_rate("api", address_of(request))
    if message.method == subscriptions.METHOD:
        _check_listening(request, message, protocol)
    exchange.client = _client(message, request)
    key = "" if protocol.modern else sessions.key_of(request.headers, message.id)
    if message.method == "tools/call":
        work = await _tool_call(exchange, message, protocol, address_of(request))
    else:
        work = _lookup(exchange, message, protocol)

    async def finalised(report: Report) -> JSON:
        async with sessions.cancellable(key):
            return _finalise(exchange, protocol, await work(report))

    return finalised


def _client(message: Message, request: HttpRequest) -> str:
    """The client's name; "" for the threads of codeinfo's own Codex, whose address has a query."""
    if request.GET:
        return ""
    meta = message.params.get("_meta")
    info = meta.get(CLIENT_INFO_META_KEY) if isinstance(meta, dict) else None
    stated = client_calls.name_of(info or message.params.get("clientInfo"))
    return stated or sessions.client_of(request.headers)


def _is_known(endpoint: McpEndpoint, message: Message, protocol: ProtocolVersion) -> bool:
    streamed = subscriptions.METHOD if protocol.modern else ""
    return message.method in ("tools/call", streamed, *methods_of(endpoint, protocol))


def _check_listening(request: HttpRequest, message: Message, protocol: ProtocolVersion) -> None:
    subscriptions.check(protocol, message.params)
    if EVENT_STREAM not in request.headers.get("Accept", ""):
        raise RpcError(INVALID_REQUEST, f"Accept {EVENT_STREAM} to listen.", status=406)


def _lookup(exchange: Exchange, message: Message, protocol: ProtocolVersion) -> Work:
    async def answer(report: Report) -> JSON:
        handler = methods_of(exchange.endpoint, protocol)[message.method]
        return await handler(exchange.endpoint, protocol, message)

    return answer


async def _tool_call(
    exchange: Exchange, message: Message, protocol: ProtocolVersion, address: str
) -> Work:
    await pass_gate(exchange.endpoint, protocol, message.params.get("arguments") or {})
    tool = exchange.tool = tool_named(exchange.endpoint, message)
    check_rate("api", address)
    call = prepare(tool, message, protocol)
    if tool.takes_long and tasks.is_declared(protocol) and tasks.has_room():
        exchange.is_task = True
        call = replace(call, seconds=tasks.WORK_SECONDS)
    return call.run


def _check_params(message: Message, protocol: ProtocolVersion) -> None:
    try:
        methods.validate_client_request(message.method, protocol.version, message.params)
    except KeyError:
        # A method that the specification does not define; it takes no parameters.
        return
    except ValidationError as error:
        places = {".".join(map(str, problem["loc"])) for problem in error.errors()}
        details = {"details": [f"{place} is missing or wrong" for place in sorted(places)]}
        raise RpcError(INVALID_PARAMS, "Invalid params", data=details) from None


def _stream_token(exchange: Exchange, request: HttpRequest) -> int | str | None:
    """The progress token of a call whose client accepts a stream; None: answer with one object."""
    if exchange.message is None or EVENT_STREAM not in request.headers.get("Accept", ""):
        return None
    return progress_token(exchange.message.params)


def _task(exchange: Exchange, work: Work) -> Reply:
    result = tasks.start(exchange.endpoint, _answer(exchange, work))
    return Reply(wire.success(exchange.id, stateless_result(exchange.endpoint, result)))


def _answer(exchange: Exchange, work: Work) -> Callable[[Report], Awaitable[JSON]]:
    async def answer(report: Report) -> JSON:
        return (await _reply(exchange, work, report)).body

    return answer


async def _blocking(exchange: Exchange, work: Work) -> HttpResponseBase:
    """Answer with one object, which begins with white space if the call takes long."""
    task = await blocking.ended_soon(_reply(exchange, work, no_progress))
    if task.done():
        return task.result().as_response()
    text = blocking.spaced(task, Reply.as_text)
    return StreamingHttpResponse(text, content_type="application/json", headers=STREAM_HEADERS)


def _listen(exchange: Exchange) -> StreamingHttpResponse:
    assert exchange.message is not None and exchange.message.id is not None, "it was parsed"
    params, id = exchange.message.params, exchange.message.id
    result = stateless_result(exchange.endpoint, {})
    frames = subscriptions.frames(exchange.endpoint, params, id, result)
    exchange.end("ok")
    return StreamingHttpResponse(frames, content_type=EVENT_STREAM, headers=STREAM_HEADERS)


def _stream(exchange: Exchange, work: Work, token: int | str) -> StreamingHttpResponse:
    # The stream outlives the request's context, which holds the request id.
    frames = sse.frames(token, _answer(exchange, work), copy_context())
    return StreamingHttpResponse(frames, content_type=EVENT_STREAM, headers=STREAM_HEADERS)


async def _reply(exchange: Exchange, work: Work, report: Report) -> Reply:
    """Run the work of a parsed request and wrap its result."""
    reply = await _attempt(exchange, work(report))
    if isinstance(reply, Reply):
        return reply
    exchange.end("ok")
    headers = (
        {sessions.HEADER: sessions.new_id(exchange.client)}
        if exchange.method == "initialize"
        else {}
    )
    return Reply(wire.success(exchange.id, reply), headers=headers)


def _finalise(exchange: Exchange, protocol: ProtocolVersion, result: JSON) -> JSON:
    """Remove the fields that the revision does not define."""
    if protocol.modern:
        result = stateless_result(exchange.endpoint, result)
    try:
        return methods.serialize_server_result(exchange.method, protocol.version, result)
    except KeyError:
        return result


async def _attempt(exchange: Exchange, work: Awaitable[T]) -> T | Reply:
    """Return what `work` returns. If it fails, log the failure and return the error answer."""
    try:
        return await work
    except asyncio.CancelledError:
        exchange.end("cancelled")
        raise
    except CallCancelled:
        exchange.end("cancelled")
        return Reply(RpcError(REQUEST_CANCELLED, "Request cancelled").as_wire(exchange.id))
    except RpcError as error:
        return _refusal(exchange, error)
    except Exception as error:
        failure = typed(error)
        if failure is None:
            logger.exception("mcp message failed")
            message = f"The server failed. Its log has the reason under {request_id.get()}."
            failure = CodeinfoError(message, code="INTERNAL_ERROR")
        return _failure(exchange, failure)


def _failure(exchange: Exchange, error: CodeinfoError) -> Reply:
    """The answer to a failed request: a JSON-RPC error, or a result for the model (failures)."""
    if not exchange.tool or exchange.protocol is None:
        return _refusal(exchange, failures.rpc_error(error), error.code)
    try:
        always_result = exchange.endpoint.tool_errors_as_results
        failure = failures.tool_failure(error, exchange.protocol, always_result=always_result)
        result = _finalise(exchange, exchange.protocol, failure)
    except RpcError as refusal:
        return _refusal(exchange, refusal, error.code)
    exchange.end("failed", error.code)
    return Reply(wire.success(exchange.id, result))


def _refusal(exchange: Exchange, error: RpcError, code: str = "") -> Reply:
    exchange.end("failed" if code else "refused", code or error.code)
    id = error.id if exchange.id is None else exchange.id
    return Reply(error.as_wire(id), _status(exchange, error), error.headers)


def _status(exchange: Exchange, error: RpcError) -> int:
    if error.status is not None:
        return error.status
    if exchange.protocol is not None and exchange.protocol.modern:
        return STATELESS_STATUS.get(error.code, 200)
    return 400 if error.code in ALWAYS_BAD else 200
