"""Access checks of an endpoint, in order (docs/mcp.md).

Every answer of an endpoint is JSON-RPC, so these checks replace those of the API's middleware.
"""

from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest

from apps.core.errors import Conflict, InvalidInput
from apps.core.principal import current
from apps.core.security.access import BAD_HOST, MAX_BODY, check_site, measured_length
from apps.core.security.rate_limits import address_of, check_rate
from apps.mcp.specification import INVALID_REQUEST
from apps.mcp.wire import RpcError


def body_of(request: HttpRequest) -> bytes:
    """Check a request and return its body. Raises RpcError with an HTTP status."""
    for check in (_method, _host_and_site, _credentials, _content_type):
        check(request)
    return _body(request)


def _method(request: HttpRequest) -> None:
    if request.method != "POST":
        raise _refused(405, "METHOD_NOT_ALLOWED", "Send messages with POST.", Allow="POST")


def _host_and_site(request: HttpRequest) -> None:
    # Host first: with DNS rebinding, a page sends an Origin that matches its Host.
    try:
        request.get_host()
        check_site(request)
    except DisallowedHost:
        raise _refused(403, "FORBIDDEN", BAD_HOST) from None
    except InvalidInput as error:
        raise _refused(403, error.code, error.message) from None


def _credentials(request: HttpRequest) -> None:
    if current().is_anonymous:
        # This limits guessed tokens; apps/mcp/rpc.py limits calls.
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


def _refused(status: int, code: str, message: str, **headers: str) -> RpcError:
    data = {"code": code}
    return RpcError(INVALID_REQUEST, message, data=data, status=status, headers=headers)
