"""Refuses requests by their headers, before Twisted has stored their body.

The application repeats these checks, and sends the same responses.
"""

import logging
from dataclasses import dataclass
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse, JsonResponse

from apps.core.config import config
from apps.core.error_map import plain, respond, status_of
from apps.core.errors import CodeinfoError, InvalidInput
from apps.core.security.access import BAD_HOST, MAX_BODY, MCP, check_length, host_is_served
from apps.mcp.specification import INVALID_REQUEST
from apps.mcp.wire import RpcError

logger = logging.getLogger("codeinfo.requests")


class HostRefused(InvalidInput):
    """The Host header names a host that is not served. Status 400, except for MCP."""

    def __init__(self) -> None:
        super().__init__(BAD_HOST, code="FORBIDDEN")


@dataclass(frozen=True)
class RequestHead:
    """The parts of a request's head that decide whether it is refused, and in which format."""

    method: str
    target: str
    host: str | None
    accept: str
    length: int | None  # of the body in bytes; None if it is chunked
    port: int  # on which it came in

    @property
    def path(self) -> str:
        return unquote(self.target.partition("?")[0])

    @property
    def is_mcp(self) -> bool:
        own_ports = (config().mcp_port, config().agents_mcp_port)
        return self.port in own_ports or self.path.removesuffix("/") in MCP


def check_body(head: RequestHead) -> None:
    """Raise InvalidInput if the body is too long, or the host is not served."""
    if head.length == 0:
        return
    if head.host is not None and not host_is_served(head.host):
        raise HostRefused
    if head.length is not None:
        check_length(head.length, MAX_BODY)


def response_to(error: CodeinfoError, head: RequestHead) -> HttpResponse:
    """Return the response to a refused request, in the envelope of its route. Logs it."""
    response = _response_to(error, head)
    context = {"method": head.method, "path": head.path, "status": response.status_code}
    logger.info("request refused", extra={"context": {**context, "code": error.code}})
    return response


def _response_to(error: CodeinfoError, head: RequestHead) -> HttpResponse:
    if head.is_mcp:
        refused = RpcError(INVALID_REQUEST, error.message, data={"code": error.code})
        return JsonResponse(refused.as_wire(None), status=status_of(error))
    if isinstance(error, HostRefused):
        return JsonResponse(plain(error), status=400)
    request = HttpRequest()
    request.path, request.META = head.path, {"HTTP_ACCEPT": head.accept}
    return respond(error, request)
