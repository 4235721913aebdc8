"""The principal: who makes a request.

apps/core/security/access.py sets it for the duration of a request or a websocket; threads and tasks
started meanwhile inherit it. Code outside of a request, such as a management command or the ingest
worker, acts as SYSTEM.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import Any

from apps.core.errors import InvalidInput


@dataclass(frozen=True)
class Principal:
    """A person or a program that makes requests.

    kind: "anonymous", "local" (anyone, if no credentials are required), "token", "user" or "system"
    user_id: primary key of a user who is logged in; None for all other kinds
    is_staff: whether it may use the routes and see the conversations for staff
    """

    kind: str
    user_id: Any = None
    is_staff: bool = False

    @property
    def is_anonymous(self) -> bool:
        return self.kind == "anonymous"

    def may_see(self, owner_id: Any) -> bool:
        """Return True if it may see objects of this owner. Objects without one are for staff."""
        return self.is_staff or (owner_id is not None and owner_id == self.user_id)


ANONYMOUS = Principal("anonymous")
LOCAL = Principal("local", is_staff=True)
TOKEN = Principal("token", is_staff=True)
SYSTEM = Principal("system", is_staff=True)

_current: ContextVar[Principal] = ContextVar("principal", default=SYSTEM)


def of_user(user: Any) -> Principal:
    """Return the principal of a Django user; ANONYMOUS if not logged in."""
    if user is None or not user.is_authenticated:
        return ANONYMOUS
    return Principal("user", user.pk, user.is_staff)


def current() -> Principal:
    """Return the principal of the current request or websocket."""
    return _current.get()


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Run the block as `principal`."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def carry_into(context: Context) -> Context:
    """Set the current principal in another context. Returns that context."""
    context.run(_current.set, _current.get())
    return context


def require_staff() -> None:
    """Raise InvalidInput FORBIDDEN unless the principal is staff."""
    if not current().is_staff:
        raise staff_only()


def staff_only() -> InvalidInput:
    """Return the error for users who are not staff."""
    return InvalidInput("Only staff may do this.", code="FORBIDDEN")
