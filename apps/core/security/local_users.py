"""The local users that may connect over loopback (CODEINFO_LOOPBACK_USERS).

Every user of a machine can connect to its loopback addresses. If no token or login is required,
only connections of root and of the user who runs codeinfo are accepted.
"""

from typing import Literal

from django.http import HttpRequest
from django.http.request import split_domain_port

from apps.core.config import Config, config
from apps.core.errors import InvalidInput, Unavailable
from apps.core.principal import current
from apps.core.security import peer_users
from apps.core.security.authentication import requires_credentials
from apps.core.security.peer_users import Endpoint
from apps.core.system import posix
from apps.core.values.addresses import read_ip

REFUSAL = (
    "This connection belongs to another user of this machine than the one who runs codeinfo. "
    "Set CODEINFO_LOOPBACK_USERS=any to serve every local user; for a reverse proxy set "
    "CODEINFO_REQUIRE_LOGIN and CODEINFO_API_TOKEN instead."
)
# Headers of reverse proxies: the browser may be anywhere.
FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via")

Rule = Literal["own", "any", "credentials", "unknown"]


def rule(k: Config) -> Rule:
    """Return which local users are served.

    own: the user who runs codeinfo, and root
    any: all, by CODEINFO_LOOPBACK_USERS
    credentials: those with a token or a login
    unknown: all, as this system does not report the owner of a connection
    """
    if requires_credentials(k):
        return "credentials"
    if k.loopback_users == "any":
        return "any"
    return "own" if peer_users.is_known() else "unknown"


def check_connection(peer: Endpoint, local: Endpoint) -> int | None:
    """Return the uid of the user at the other end of a loopback connection; None if it is unknown.

    Raises InvalidInput FORBIDDEN for a connection of another user who is not served, or of an
    unknown one: the connection was closed meanwhile. Raises Unavailable OVERLOADED if the system
    cannot be asked now, as where too many files are open.
    """
    if not is_loopback(peer[0]) or not peer_users.is_known():
        return None
    must_be_own = rule(config()) == "own"
    try:
        uid = peer_users.uid_of(peer, local)
    except OSError as error:
        if must_be_own:
            text = f"It cannot be found out whose connection this is: {error.strerror or error}"
            raise Unavailable(text, code="OVERLOADED") from error
        uid = None
    if must_be_own and not is_trusted(uid):
        raise InvalidInput(REFUSAL, code="FORBIDDEN")
    return uid


def is_trusted(uid: int | None) -> bool:
    """Return True for root, and for the user who runs codeinfo."""
    return uid in (0, posix.user_id())


def is_loopback(address: str) -> bool:
    return read_ip(address.partition("%")[0]).is_loopback


def is_on_this_machine(request: HttpRequest) -> bool:
    """Return True if the request is of staff, from a browser on this machine, and other users of
    the machine cannot be it."""
    host, _ = split_domain_port(request.get_host())
    return (
        current().is_staff
        and rule(config()) in ("own", "credentials")
        and (host == "localhost" or _names_loopback(host.strip("[]")))
        and comes_from_here(request)
    )


def comes_from_here(request: HttpRequest) -> bool:
    """Return True if the client connects over loopback, and is no reverse proxy."""
    return _names_loopback(str(request.META.get("REMOTE_ADDR", ""))) and not any(
        name in request.headers for name in FORWARDED
    )


def _names_loopback(address: str) -> bool:
    try:
        return is_loopback(address)
    except ValueError:
        return False
