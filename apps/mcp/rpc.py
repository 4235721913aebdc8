"""The view of an endpoint: one POST, one JSON-RPC message, one answer.

A long call reports progress over an event stream if the client asked for that, or becomes a task if
the client knows tasks; otherwise white space precedes its answer. When the client's connection
closes, Django cancels the task that serves it, and with it the tool, unless that is a task.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    QueryDict,
    StreamingHttpResponse,
)

from apps.core.error_map import typed
from apps.core.errors import CodeinfoError
from apps.core.security.rate_limits import address_of, check_rate
from apps.core.types import JSON
from apps.logs.context import request_id
from apps.mcp import (
    blocking,
    calls,
    client_calls,
    failures,
    guard,
    sessions,
    sse,
    subscriptions,
    tasks,
    wire,
)
from apps.mcp.arguments import with_object
from apps.mcp.methods import methods_of, pass_gate, stateless_result
from apps.mcp.protocol_version import ProtocolVersion, protocol_version_of
from apps.mcp.scoping import expect
from apps.mcp.sessions import CallCancelled
from apps.mcp.specification import (
    CLIENT_INFO_META_KEY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    PARSE_ERROR,
    as_specified,
    load_models,
    wrong_params,
)
from apps.mcp.types import McpEndpoint, McpTool, Report, Work
from apps.mcp.wire import Message, RpcError
from apps.mcp.workspace import workspace_of

logger = logging.getLogger("codeinfo.mcp")

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


@dataclass(frozen=True)
class Known:
    """What is known of a request while it is read: enough to refuse it. `end` logs it once.

    id: None until the message is parsed.
    protocol: None until the revision is known.
    method: "" until it is known, "notification" for all notifications.
    client: the name that the client gives itself; "" if unknown.
    tool: the called tool; None for other methods.
    started: `time.perf_counter()` at the start.
    """

    endpoint: McpEndpoint
    id: wire.Id | None = None
    protocol: ProtocolVersion | None = None
    method: str = ""
    client: str = ""
    tool: McpTool | None = None
    started: float = field(default_factory=time.perf_counter)

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


@dataclass(frozen=True, kw_only=True)
class Call(Known):
    """A request that the endpoint answers. The endpoint is narrowed by the address.

    is_task: the call answers with a task.
    """

    id: wire.Id
    message: Message
    protocol: ProtocolVersion
    is_task: bool = False


class Refused(Exception):
    """The request ends with `reply`, which is logged."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def serve(endpoint: McpEndpoint, narrow: Narrow | None = None) -> View:
    """Return the view of an endpoint. `narrow` reduces the endpoint to a request's query string."""

    async def view(request: HttpRequest) -> HttpResponseBase:
        await load_models()
        try:
            call = _read(endpoint, request, narrow)
            if call is None:
                return HttpResponse(status=202)
            call, work = await _work(call, request)
        except Refused as refused:
            return refused.reply.as_response()
        if call.method == subscriptions.METHOD:
            return _listen(call)
        if not call.tool:
            return (await _reply(call, work, calls.no_progress)).as_response()
        if call.is_task:
            return _task(call, work).as_response()
        token = _stream_token(call, request)
        return await _blocking(call, work) if token is None else _stream(call, work, token)

    return view


def _read(endpoint: McpEndpoint, request: HttpRequest, narrow: Narrow | None) -> Call | None:
    """Parse a request; None for a notification. Raises Refused."""
    known = Known(endpoint)
    with _refusing(known):
        message = wire.parse(guard.body_of(request))
    known = replace(known, id=message.id)
    with _refusing(known):
        protocol = protocol_version_of(message, request.headers)
    known = replace(known, protocol=protocol)
    if message.id is None:
        with _refusing(known):
            sessions.notified(message, request.headers)
        replace(known, method="notification").end("ok")
        return None
    with _refusing(known):
        if narrow is not None:
            endpoint = narrow(endpoint, request.GET)
        if not _is_known(endpoint, message, protocol):
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
    call = Call(
        endpoint,
        id=message.id,
        method=message.method,
        started=known.started,
        message=with_object(message),
        protocol=protocol,
    )
    with _refusing(call):
        _check_params(call.message, protocol)
        if message.method in LIMITED:
            check_rate("api", address_of(request))
        if message.method == subscriptions.METHOD:
            _check_listening(request, message, protocol)
        return replace(call, client=_client(message, request))


async def _work(call: Call, request: HttpRequest) -> tuple[Call, Work]:
    """Return the call with its tool, and the work that answers it. Raises Refused."""
    key = "" if call.protocol.modern else sessions.key_of(request.headers, call.id)
    if call.method == "tools/call":
        with _refusing(call):
            arguments = call.message.params.get("arguments") or {}
            await pass_gate(call.endpoint, call.protocol, arguments)
            tool = calls.tool_named(call.endpoint, call.message)
        call = replace(call, tool=tool)
        with _refusing(call):
            check_rate("api", address_of(request))
            call, work = _tool_work(call, tool, request)
    else:
        work = _lookup(call)
    if call.method == "initialize":
        await expect(workspace_of(request.headers))

    async def finalised(report: Report) -> JSON:
        async with sessions.cancellable(key):
            return _finalise(call, await work(report))

    return call, finalised


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


def _lookup(call: Call) -> Work:
    async def answer(report: Report) -> JSON:
        handler = methods_of(call.endpoint, call.protocol)[call.method]
        return await handler(call.endpoint, call.protocol, call.message)

    return answer


def _tool_work(call: Call, tool: McpTool, request: HttpRequest) -> tuple[Call, Work]:
    is_task = tool.takes_long and tasks.is_declared(call.protocol) and tasks.has_room()
    seconds = tasks.WORK_SECONDS if is_task else calls.CALL_SECONDS
    work = calls.prepare(tool, call.message, call.protocol, request.headers, seconds)
    return replace(call, is_task=is_task), work


def _check_params(message: Message, protocol: ProtocolVersion) -> None:
    if places := wrong_params(message.method, protocol.version, message.params):
        details = {"details": [f"{place} is missing or wrong" for place in places]}
        raise RpcError(INVALID_PARAMS, "Invalid params", data=details)


def _stream_token(call: Call, request: HttpRequest) -> int | str | None:
    """The progress token of a call whose client accepts a stream; None: answer with one object."""
    token = (call.message.params.get("_meta") or {}).get("progressToken")
    is_token = isinstance(token, int | str) and not isinstance(token, bool)
    return token if is_token and EVENT_STREAM in request.headers.get("Accept", "") else None


def _task(call: Call, work: Work) -> Reply:
    result = tasks.start(call.endpoint, _answer(call, work))
    return Reply(wire.success(call.id, stateless_result(call.endpoint, result)))


def _answer(call: Call, work: Work) -> Work:
    async def answer(report: Report) -> JSON:
        return (await _reply(call, work, report)).body

    return answer


async def _blocking(call: Call, work: Work) -> HttpResponseBase:
    """Answer with one object, which begins with white space if the call takes long."""
    task = await blocking.ended_soon(_reply(call, work, calls.no_progress))
    if task.done():
        return task.result().as_response()
    text = blocking.spaced(task, Reply.as_text)
    return StreamingHttpResponse(text, content_type="application/json", headers=STREAM_HEADERS)


def _listen(call: Call) -> StreamingHttpResponse:
    result = stateless_result(call.endpoint, {})
    frames = subscriptions.frames(call.endpoint, call.message.params, call.id, result)
    call.end("ok")
    return StreamingHttpResponse(frames, content_type=EVENT_STREAM, headers=STREAM_HEADERS)


def _stream(call: Call, work: Work, token: int | str) -> StreamingHttpResponse:
    # The stream outlives the request's context, which holds the request id.
    frames = sse.frames(token, _answer(call, work), copy_context())
    return StreamingHttpResponse(frames, content_type=EVENT_STREAM, headers=STREAM_HEADERS)


async def _reply(call: Call, work: Work, report: Report) -> Reply:
    """Run the work of a parsed request and wrap its result."""
    try:
        with _refusing(call):
            result = await work(report)
    except Refused as refused:
        return refused.reply
    call.end("ok")
    headers = {sessions.HEADER: sessions.new_id(call.client)} if call.method == "initialize" else {}
    return Reply(wire.success(call.id, result), headers=headers)


def _finalise(call: Call, result: JSON) -> JSON:
    """Remove the fields that the revision does not define."""
    if call.protocol.modern:
        result = stateless_result(call.endpoint, result)
    return as_specified(call.method, call.protocol.version, result)


@contextmanager
def _refusing(known: Known) -> Iterator[None]:
    """Log a failure in the block, and raise Refused with the error answer."""
    try:
        yield
    except asyncio.CancelledError:
        known.end("cancelled")
        raise
    except CallCancelled:
        known.end("cancelled")
        error = RpcError(REQUEST_CANCELLED, "Request cancelled")
        raise Refused(Reply(error.as_wire(known.id))) from None
    except RpcError as error:
        raise Refused(_refusal(known, error)) from error
    except Exception as error:
        failure = typed(error)
        if failure is None:
            logger.exception("mcp message failed")
            message = f"The server failed. Its log has the reason under {request_id.get()}."
            failure = CodeinfoError(message, code="INTERNAL_ERROR")
        raise Refused(_failure(known, failure)) from error


def _failure(known: Known, error: CodeinfoError) -> Reply:
    """The answer to a failed request: a JSON-RPC error, or a result for the model (failures)."""
    if not isinstance(known, Call) or not known.tool:
        return _refusal(known, failures.rpc_error(error), error.code)
    try:
        always_result = known.endpoint.tool_errors_as_results
        failure = failures.tool_failure(error, known.protocol, always_result=always_result)
        result = _finalise(known, failure)
    except RpcError as refusal:
        return _refusal(known, refusal, error.code)
    known.end("failed", error.code)
    return Reply(wire.success(known.id, result))


def _refusal(known: Known, error: RpcError, code: str = "") -> Reply:
    known.end("failed" if code else "refused", code or error.code)
    id = error.id if known.id is None else known.id
    return Reply(error.as_wire(id), _status(known.protocol, error), error.headers)


def _status(protocol: ProtocolVersion | None, error: RpcError) -> int:
    if error.status is not None:
        return error.status
    if protocol is not None and protocol.modern:
        return STATELESS_STATUS.get(error.code, 200)
    return 400 if error.code in ALWAYS_BAD else 200
