"""Who may send what to an endpoint, in the order in which it is checked (docs/mcp.md).

The endpoints answer in JSON-RPC whatever happens, so they guard themselves and the API's own
middleware lets them be.
"""

from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest
from mcp_types import INVALID_REQUEST

from apps.core.access import MAX_BODY, check_site, measured_length
from apps.core.errors import Conflict, InvalidInput
from apps.core.principal import current
from apps.core.rate_limits import address_of, check_rate
from apps.mcp.wire import RpcError


def body_of(request: HttpRequest) -> bytes:
    """The body of a request that may come in. Raises RpcError with its HTTP status otherwise."""
    for check in (_method, _host_and_site, _credentials, _content_type):
        check(request)
    return _body(request)


def _method(request: HttpRequest) -> None:
    if request.method != "POST":
        raise _refused(405, "METHOD_NOT_ALLOWED", "Send messages with POST.", Allow="POST")


def _host_and_site(request: HttpRequest) -> None:
    # Host first: a page that rebound its own name to this address sends an Origin that fits it.
    try:
        request.get_host()
        check_site(request)
    except DisallowedHost:
        raise _refused(403, "FORBIDDEN", "This host name is not served.") from None
    except InvalidInput as error:
        raise _refused(403, error.code, error.message) from None


def _credentials(request: HttpRequest) -> None:
    if current().is_anonymous:
        # Guessing is counted; calls are where they are made (apps/mcp/rpc.py).
        try:
            check_rate("api", address_of(request))
        except Conflict as error:
            wait = {"Retry-After": str(error.details["retryAfter"])}
            raise _refused(429, error.code, error.message, **wait) from None
        challenge = {"WWW-Authenticate": "Bearer"}
        raise _refused(401, "UNAUTHORIZED", "A bearer token or a login is needed.", **challenge)


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
