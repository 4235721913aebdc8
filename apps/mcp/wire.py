"""JSON-RPC 2.0 messages: parse requests, build answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from apps.core.http.limits import is_deep
from apps.core.http.parsers import MAX_DEPTH
from apps.core.types import JSON
from apps.mcp.specification import INVALID_PARAMS, INVALID_REQUEST, JSONRPC_VERSION, PARSE_ERROR

Id = int | str


class RpcError(Exception):
    """A JSON-RPC error.

    status: the HTTP status; None: `rpc` derives it from the protocol revision.
    id: the id of the request, if it could be read.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        data: JSON | None = None,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        id: Id | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.headers = dict(headers or {})
        self.id = id

    def as_wire(self, id: Id | None) -> JSON:
        error: JSON = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": JSONRPC_VERSION, "id": id, "error": error}


@dataclass(frozen=True)
class Message:
    """A request, or a notification if `id` is None."""

    method: str
    id: Id | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_notification(self) -> bool:
        return self.id is None


def success(id: Id | None, result: JSON) -> JSON:
    return {"jsonrpc": JSONRPC_VERSION, "id": id, "result": result}


def parse(body: bytes) -> Message:
    """Parse the message in a body.

    Raises RpcError: -32700 for invalid JSON, lone surrogates, or nesting deeper than MAX_DEPTH;
    -32600 for an invalid request; -32602 if `params` is not an object.
    """
    value = read_json(body)
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "Send one JSON-RPC message, which is an object.")
    id = _id(value)
    if value.get("jsonrpc") != JSONRPC_VERSION:
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0".', id=id)
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string.", id=id)
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object.", status=400, id=id)
    return Message(method, id, params or {})


def read_json(body: bytes) -> Any:
    """Raises RpcError -32700 for what `parse` refuses."""
    try:
        value = json.loads(body.decode(), parse_constant=_no_number)
        deep = is_deep(value, MAX_DEPTH)
        # A lone surrogate is valid JSON, but cannot be encoded in UTF-8.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "The body is not JSON in UTF-8.") from None
    if deep:
        raise RpcError(PARSE_ERROR, f"The body is nested deeper than {MAX_DEPTH} levels.")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _id(value: Mapping[str, Any]) -> Id | None:
    if "id" not in value:
        return None
    id = value["id"]
    if isinstance(id, bool) or not isinstance(id, int | str):
        raise RpcError(INVALID_REQUEST, "id must be a string or a whole number.")
    return id
