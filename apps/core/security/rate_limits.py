"""Rate limits: requests a minute, and failed logins. docs/security.md has the table.

The counters are in this process's cache. There are no limits if only this machine can reach the
server (`limits_apply`).
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

from apps.core.config import Config, config
from apps.core.errors import Conflict
from apps.core.principal import current
from apps.core.security.authentication import is_reachable
from apps.core.values.addresses import read_ip

RateClass = Literal["api", "chat", "hook"]

WINDOW_SECONDS = 60
# Webhooks a minute: pushes are rarer, and each forged one is a body to check.
HOOK_RATE = 60
# Failed logins of a name and address in LOGIN_SECONDS, after which further ones are refused.
LOGIN_FAILURES, LOGIN_SECONDS = 5, 15 * 60
# Longest user name.
MAX_NAME = 254

# Locks of the logins in progress.
_logins: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


def limits_apply(k: Config) -> bool:
    """Return True if other machines, or clients of a proxy, can reach the server."""
    return k.require_login or is_reachable(k) or bool(k.trusted_proxies)


def check_rate(kind: RateClass, address: str) -> None:
    """Count a request of the current principal, from `address`. Raises Conflict RATE_LIMITED."""
    k = config()
    limit = {"chat": k.chat_rate, "api": k.api_rate, "hook": HOOK_RATE}[kind]
    if not limit or not limits_apply(k):
        return
    window, passed = divmod(time.time(), WINDOW_SECONDS)
    counter = f"rate:{kind}:{_caller(address)}:{window:.0f}"
    cache.add(counter, 0, 2 * WINDOW_SECONDS)
    if cache.incr(counter) > limit:
        raise limited(WINDOW_SECONDS - int(passed), f"More than {limit} requests a minute.")


@asynccontextmanager
async def login_attempt(username: str, address: str) -> AsyncIterator[None]:
    """Enclose an attempt to log in. Attempts for the same name and address run one by one, so that
    each counts the failures before it. Raises Conflict RATE_LIMITED."""
    lock = _logins.setdefault(_login_key(username, address), asyncio.Lock())
    async with lock:
        _check_login(username, address)
        yield


def _check_login(username: str, address: str) -> None:
    if not limits_apply(config()):
        return
    first, failures = cache.get(_login_key(username, address), (0.0, 0))
    if failures >= LOGIN_FAILURES:
        left = LOGIN_SECONDS - int(time.time() - first)
        raise limited(max(left, 1), "Too many failed logins.")


def limited(seconds: int, why: str) -> Conflict:
    """Return the error, with the time after which the client may retry."""
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
    """Return the address of the client; behind a trusted proxy, that which the proxy reports. For
    IPv6 it is its network."""
    return network_of(str(request.META.get("REMOTE_ADDR", "")))


def network_of(text: str) -> str:
    """Return an address; for IPv6 its /64 network, as one client usually has all of its
    addresses."""
    try:
        address = read_ip(text)
    except ValueError:
        return text
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), 64), strict=False))
    return str(address)


def _caller(address: str) -> str:
    """Return the key of the counter: the token, the user, or else the address."""
    principal = current()
    if principal.kind == "token":
        return "token"
    return f"user-{principal.user_id}" if principal.user_id is not None else f"address-{address}"


def _login_key(username: str, address: str) -> str:
    # Normalised as by Django's form, and hashed, as a cache key may not have all characters.
    normalized = normalize("NFKC", username.strip()[:MAX_NAME]).casefold()
    name = hashlib.sha256(normalized.encode(errors="replace")).hexdigest()
    return f"login:{name}:{address}"
