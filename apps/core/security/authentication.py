"""Authentication of requests and websockets: by bearer token, by session, or anonymous."""

import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.db import DatabaseError
from django.http import HttpRequest

from apps.core.config import Config, config
from apps.core.errors import InvalidInput
from apps.core.principal import ANONYMOUS, LOCAL, TOKEN, Principal, of_user

# A socket or a stream ends within this time after its user has logged out or lost rights.
RECHECK_SECONDS = 15.0
# In the data folder: the token that replaces those that are not configured, if a login is required
# and other machines can connect (`codeinfo.settings`).
TOKEN_FILE = "access-token.txt"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def allowed_hosts(k: Config) -> list[str]:
    """Return the host names that are served: loopback, the bound address, and those configured."""
    bound = [] if k.bind in ("0.0.0.0", "::") else [k.bind]
    return [*LOOPBACK, *bound, *k.allowed_hosts]


def requires_credentials(k: Config) -> bool:
    """Return True if API, MCP, pages and sockets require a token or a login.

    That is so with CODEINFO_REQUIRE_LOGIN, and if other host names than loopback are served: behind
    a reverse proxy on this machine, every request comes from loopback.
    """
    return k.require_login or (is_reachable(k) and not k.allow_open_access)


def is_reachable(k: Config) -> bool:
    """Return True if the settings let other machines reach the server."""
    return k.bind not in LOOPBACK or any(host not in LOOPBACK for host in k.allowed_hosts)


async def principal_of(request: HttpRequest, token: str) -> Principal:
    """Return the principal of a request. `token` is the bearer token of its route, or ""."""
    if _has_token(request.headers.get("Authorization", ""), token):
        return TOKEN
    if not (token or requires_credentials(config())):
        return LOCAL
    return await _user_of_session(request)


async def principal_of_scope(scope: Mapping[str, Any], headers: Mapping[bytes, str]) -> Principal:
    """Return the principal of a websocket."""
    token = config().api_token
    if _has_token(headers.get(b"authorization", ""), token):
        return TOKEN
    if not requires_credentials(config()):
        return LOCAL
    return of_user(scope.get("user"))


def _has_token(authorization: str, token: str) -> bool:
    """Whether a header has the token of its route, or that of this server's `server.json`."""
    return bool(token and is_bearer(authorization, token)) or is_of_server_file(authorization)


@cache
def server_token() -> str:
    """Return the token of this process, with which the `codeinfo` command calls it: new at each
    start, and in `server.json`, which only the user who runs codeinfo can read. It serves every
    route, besides the tokens that are configured."""
    return secrets.token_urlsafe(32)


def is_of_server_file(authorization: str) -> bool:
    """Return True if an Authorization header has the token of this server's `server.json`, which
    only the user who runs codeinfo can read."""
    return bool(authorization) and is_bearer(authorization, server_token())


def refuse_all_but_commands(authorization: str) -> None:
    """Raise InvalidInput SERVER_TOKEN_ONLY, unless the header has the token of `server.json`."""
    if not is_of_server_file(authorization):
        raise InvalidInput(
            "Only the codeinfo command of the user who runs codeinfo may do this.",
            code="SERVER_TOKEN_ONLY",
        )


def is_bearer(authorization: str, token: str) -> bool:
    """Return True if an Authorization header has `token`. Compares in constant time."""
    scheme, _, value = authorization.partition(" ")
    return scheme.lower() == "bearer" and secrets.compare_digest(value.encode(), token.encode())


async def _user_of_session(request: HttpRequest) -> Principal:
    """Return the user of a session cookie, also for the API, which has no session middleware.

    ANONYMOUS if the database is unavailable; tokens still work then.
    """
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    principal = ANONYMOUS
    with suppress(DatabaseError):
        if hasattr(request, "auser"):
            principal = of_user(await request.auser())
        elif key:
            principal = await sync_to_async(_read_user)(key)
    return principal


def _read_user(key: str) -> Principal:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return of_user(get_user(request))


class SessionCheck:
    """Rechecks the session of a websocket or a stream while it is open."""

    def __init__(self, principal: Principal, cookies: Mapping[str, str]) -> None:
        self._principal = principal
        self._key = cookies.get(settings.SESSION_COOKIE_NAME, "")
        self._due = time.monotonic() + RECHECK_SECONDS

    async def is_valid(self) -> bool:
        """Return False if the session has ended, or its user or their rights have changed.

        Reads the database once in RECHECK_SECONDS. While it is unavailable, the session is valid.
        """
        if self._principal.kind != "user" or time.monotonic() < self._due:
            return True
        self._due = time.monotonic() + RECHECK_SECONDS
        try:
            current = await database_sync_to_async(_read_user)(self._key)
        except DatabaseError:
            return True
        return bool(current == self._principal)
