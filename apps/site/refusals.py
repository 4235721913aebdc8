"""What is refused when the headers of a request have come, before its body is stored.

The application checks all of this again, and more: these are the checks that cannot wait until
Twisted has stored the whole body. The answers are the application's own.
"""

import logging
from dataclasses import dataclass
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse, JsonResponse
from mcp_types import INVALID_REQUEST

from apps.core.access import MAX_BODY, MCP, host_is_served
from apps.core.config import config
from apps.core.error_map import plain, respond, status_of
from apps.core.errors import CodeinfoError, InvalidInput
from apps.mcp.wire import RpcError

logger = logging.getLogger("codeinfo.requests")


class HostRefused(InvalidInput):
    """The Host header names a host that is not served; 400 on every route but MCP's."""

    def __init__(self) -> None:
        super().__init__("Host not allowed.", code="FORBIDDEN")


@dataclass(frozen=True)
class RequestHead:
    """The part of a request's head that decides whether its body is taken, and how a refusal looks.

    `length`: bytes of the body; None if it is chunked. `port` is the one it came in on.
    """

    method: str
    target: str
    host: str | None
    accept: str
    length: int | None
    port: int

    @property
    def path(self) -> str:
        return unquote(self.target.partition("?")[0])

    @property
    def is_mcp(self) -> bool:
        own_ports = (config().mcp_port, config().agents_mcp_port)
        return self.port in own_ports or self.path in MCP


def check_body(head: RequestHead) -> None:
    """Refuse a body that is too long, or that is sent to a host that is not served.

    Raises InvalidInput.
    """
    if head.length == 0:
        return
    if head.host is not None and not host_is_served(head.host):
        raise HostRefused
    if head.length is not None:
        check_length(head.length)


def check_length(length: int) -> None:
    """Refuse more bytes than any route takes. Raises InvalidInput."""
    if length > MAX_BODY:
        raise InvalidInput(f"The body is larger than {MAX_BODY} bytes.", code="PAYLOAD_TOO_LARGE")


def response_to(error: CodeinfoError, head: RequestHead) -> HttpResponse:
    """The answer to a refused request, in the envelope of its route; logged."""
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
