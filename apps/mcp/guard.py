"""Who may send what to an endpoint, in the order in which it is checked (docs/mcp.md).

The endpoints answer in JSON-RPC whatever happens, so they guard themselves and the API's own
middleware lets them be.
"""

from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest
from mcp_types import INVALID_REQUEST

from apps.mcp.wire import RpcError
from codeinfo.access import MAX_BODY, has_token, measured_length, origin_allowed
from codeinfo.conf import knobs


def body_of(request: HttpRequest) -> bytes:
    """The body of a request that may come in. Raises RpcError with its HTTP status otherwise."""
    for check in (_method, _host_and_origin, _token, _content_type):
        check(request)
    return _body(request)


def _method(request: HttpRequest) -> None:
    if request.method != "POST":
        raise _refused(405, "METHOD_NOT_ALLOWED", "Send messages with POST.", Allow="POST")


def _host_and_origin(request: HttpRequest) -> None:
    # Host first: a page that rebound its own name to this address sends an Origin that fits it.
    try:
        host = request.get_host()
    except DisallowedHost:
        raise _refused(403, "FORBIDDEN", "This host name is not served.") from None
    origin = request.headers.get("Origin")
    if origin is not None and not origin_allowed(origin, host):
        raise _refused(403, "FORBIDDEN", "This origin may not call the endpoint.")


def _token(request: HttpRequest) -> None:
    token = knobs().mcp_token
    if token and not has_token(request, token):
        challenge = {"WWW-Authenticate": "Bearer"}
        raise _refused(401, "UNAUTHORIZED", "A bearer token is needed.", **challenge)


def _content_type(request: HttpRequest) -> None:
    if request.content_type != "application/json":
        raise _refused(415, "UNSUPPORTED_MEDIA_TYPE", "The body must be application/json.")


def _body(request: HttpRequest) -> bytes:
    try:
        if measured_length(request) <= MAX_BODY:
            return request.body
    except RequestDataTooBig:
        pass
    raise _refused(413, "PAYLOAD_TOO_LARGE", f"The body is larger than {MAX_BODY} bytes.")


def _refused(status: int, word: str, message: str, **headers: str) -> RpcError:
    data = {"code": word}
    return RpcError(INVALID_REQUEST, message, data=data, status=status, headers=headers)
