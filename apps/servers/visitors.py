"""Access control for choosing LM Studio's address, which makes this process connect there."""

from django.http import HttpRequest

from apps.core.errors import InvalidInput
from apps.core.principal import current, require_staff
from apps.core.security.local_users import comes_from_here


def check_may_choose(request: HttpRequest, *, logged_in: bool = False) -> None:
    """Raise InvalidInput (FORBIDDEN) for an anonymous client on another host and, if credentials
    are required, for a user who is not staff."""
    if current().kind == "local" and not (logged_in or comes_from_here(request)):
        raise InvalidInput(
            "Log in to use another address, or set LMSTUDIO_BASE_URL where codeinfo runs.",
            code="FORBIDDEN",
        )
    require_staff()
