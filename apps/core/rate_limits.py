"""How often somebody may ask: requests a minute, and failed logins.

Counted in the cache of this process. Where nobody but this machine can reach the server there are
no limits (`limits_apply`). docs/security.md has the table.
"""

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv6Address, IPv6Network
from typing import Any, Literal
from unicodedata import normalize
from weakref import WeakValueDictionary

from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.core.cache import cache
from django.dispatch import receiver
from django.http import HttpRequest

from apps.core.addresses import read_ip
from apps.core.authentication import is_reachable
from apps.core.config import Config, config
from apps.core.errors import Conflict
from apps.core.principal import current

Kind = Literal["api", "chat"]

WINDOW_SECONDS = 60
LOGIN_SECONDS = 15 * 60
# No user has a longer name.
MAX_NAME = 254

# Of the logins under way.
_logins: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


def limits_apply(k: Config) -> bool:
    """Return True unless everybody who can reach the server sits at this machine."""
    return k.require_login or is_reachable(k) or bool(k.trusted_proxies)


def check_rate(kind: Kind, address: str) -> None:
    """Count a request of the current principal, from `address`. Raises Conflict RATE_LIMITED."""
    k = config()
    limit = k.chat_rate if kind == "chat" else k.api_rate
    if not limit or not limits_apply(k):
        return
    window, passed = divmod(time.time(), WINDOW_SECONDS)
    if _count(f"rate:{kind}:{_caller(address)}:{window:.0f}", WINDOW_SECONDS) > limit:
        raise limited(WINDOW_SECONDS - int(passed), f"More than {limit} requests a minute.")


@asynccontextmanager
async def login_attempt(username: str, address: str) -> AsyncIterator[None]:
    """The block tries a password. One after the other for each name and address: of many at once
    none would know that the others fail. Raises Conflict RATE_LIMITED."""
    turn = _logins.setdefault(_login_key(username, address), asyncio.Lock())
    async with turn:
        _check_login(username, address)
        yield


def _check_login(username: str, address: str) -> None:
    k = config()
    if not k.login_failures or not limits_apply(k):
        return
    first, failures = cache.get(_login_key(username, address), (0.0, 0))
    if failures >= k.login_failures:
        left = LOGIN_SECONDS - int(time.time() - first)
        raise limited(max(left, 1), "Too many failed logins.")


def limited(seconds: int, why: str) -> Conflict:
    """The refusal, which says when to come back."""
    wait = f"{seconds} seconds" if seconds <= 90 else f"{math.ceil(seconds / 60)} minutes"
    message = f"{why} Try again in {wait}."
    return Conflict(message, code="RATE_LIMITED", details={"retryAfter": seconds})


@receiver(user_login_failed)
def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    if request is not None:
        key = _login_key(str(credentials.get("username", "")), address_of(request))
        now = time.time()
        first, failures = cache.get(key, (now, 0))
        cache.set(key, (first, failures + 1), first + LOGIN_SECONDS - now)


@receiver(user_logged_in)
def _succeeded(request: HttpRequest | None, user: Any, **_: Any) -> None:
    if request is not None:
        cache.delete(_login_key(user.get_username(), address_of(request)))


def address_of(request: HttpRequest) -> str:
    """The address of the client; behind a trusted proxy the one that the proxy tells.

    Of IPv6 the network of 64 bits: whoever has one of its addresses has them all.
    """
    text = str(request.META.get("REMOTE_ADDR", ""))
    try:
        address = read_ip(text)
    except ValueError:
        return text
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), 64), strict=False))
    return str(address)


def _caller(address: str) -> str:
    """Whose requests are counted together: a token's, a user's, else those of an address."""
    principal = current()
    if principal.kind == "token":
        return "token"
    return f"user-{principal.user_id}" if principal.user_id is not None else f"address-{address}"


def _login_key(username: str, address: str) -> str:
    # As Django's form reads it. A name may hold what no cache takes for a key.
    read = normalize("NFKC", username.strip()[:MAX_NAME]).casefold()
    name = hashlib.sha256(read.encode(errors="replace")).hexdigest()
    return f"login:{name}:{address}"


def _count(key: str, seconds: int) -> int:
    """How often a key was counted, this time included, in a window of `seconds`."""
    cache.add(key, 0, 2 * seconds)
    return int(cache.incr(key))
