"""Who makes a request: the principal, and how the code below the doors learns of it.

The doors (apps/core/access.py) set it for the length of a request or a socket. Threads and tasks
that are started meanwhile inherit it. Code that runs outside of any request, such as a management
command or the ingest worker, acts as SYSTEM.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import Any

from apps.core.errors import InvalidInput


@dataclass(frozen=True)
class Principal:
    """A person or a program that asks for something.

    kind: "anonymous", "local" (anyone, where no credentials are required), "token", "user" or
        "system".
    user_id: the primary key of the user who is logged in; None for all other kinds.
    is_staff: whether the routes and conversations for staff are open to it.
    """

    kind: str
    user_id: Any = None
    is_staff: bool = False

    @property
    def is_anonymous(self) -> bool:
        return self.kind == "anonymous"

    def may_see(self, owner_id: Any) -> bool:
        """Return True if what belongs to a user is open to it; without an owner it is staff's."""
        return self.is_staff or (owner_id is not None and owner_id == self.user_id)


ANONYMOUS = Principal("anonymous")
LOCAL = Principal("local", is_staff=True)
TOKEN = Principal("token", is_staff=True)
SYSTEM = Principal("system", is_staff=True)

_current: ContextVar[Principal] = ContextVar("principal", default=SYSTEM)


def of_user(user: Any) -> Principal:
    """The principal of a Django user; ANONYMOUS for one who is not logged in."""
    if user is None or not user.is_authenticated:
        return ANONYMOUS
    return Principal("user", user.pk, user.is_staff)


def current() -> Principal:
    """The principal of the request or socket that is served here."""
    return _current.get()


@contextmanager
def acting_as(principal: Principal) -> Iterator[None]:
    """Serve what happens in the block for `principal`."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def carry_into(context: Context) -> Context:
    """Let what runs in `context`, which was not copied from here, act for the same principal."""
    context.run(_current.set, _current.get())
    return context


def require_staff() -> None:
    """Raise InvalidInput FORBIDDEN unless the principal is staff."""
    if not current().is_staff:
        raise staff_only()


def staff_only() -> InvalidInput:
    """The refusal of what only staff may do."""
    return InvalidInput("Only staff may do this.", code="FORBIDDEN")
