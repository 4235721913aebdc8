"""Access control for choosing LM Studio's address, which makes this process connect there."""

from ipaddress import ip_address

from django.http import HttpRequest

from apps.core.errors import InvalidInput
from apps.core.principal import current, require_staff

# Set by proxies. Behind a proxy every client seems to be local.
FORWARDED = ("X-Forwarded-For", "X-Real-IP", "Forwarded")


def check_may_choose(request: HttpRequest, *, logged_in: bool = False) -> None:
    """Raise InvalidInput (FORBIDDEN) for an anonymous client on another host and, if credentials
    are required, for a user who is not staff."""
    if current().kind == "local" and not (logged_in or _is_local(request)):
        raise InvalidInput(
            "Log in to use another address, or set LMSTUDIO_BASE_URL where codeinfo runs.",
            code="FORBIDDEN",
        )
    require_staff()


def _is_local(request: HttpRequest) -> bool:
    if any(name in request.headers for name in FORWARDED):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
