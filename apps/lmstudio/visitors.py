"""Who may say where LM Studio is: whoever does makes this process connect there."""

from ipaddress import ip_address

from django.http import HttpRequest

from codeinfo.conf import knobs
from codeinfo.errors import InvalidInput

# Set by proxies: behind one, everybody seems to sit at this machine.
FORWARDED = ("X-Forwarded-For", "X-Real-IP", "Forwarded")


def check_may_choose(request: HttpRequest, *, logged_in: bool = False) -> None:
    """Raises InvalidInput (FORBIDDEN) for an anonymous visitor from another machine."""
    if not (logged_in or _has_token(request) or _is_here(request)):
        raise InvalidInput(
            "Log in to use another address, or set LMSTUDIO_BASE_URL where codeinfo runs.",
            code="FORBIDDEN",
        )


def _has_token(request: HttpRequest) -> bool:
    # The API's door has checked it (codeinfo.access); pages have none.
    return bool(knobs().api_token) and not request.path.startswith("/ui/")


def _is_here(request: HttpRequest) -> bool:
    if any(name in request.headers for name in FORWARDED):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
