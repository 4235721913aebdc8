"""What a look-up could not read: its answer says so, and the worker looks what is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from uuid import UUID

from apps.index.changes import unreadable
from apps.index.models import Root


@dataclass
class Unread:
    """parts: roots of which a part of the index is lost
    texts: the root of each file whose text is lost, by root and document"""

    parts: dict[UUID, Root] = field(default_factory=dict)
    texts: dict[tuple[UUID, str], Root] = field(default_factory=dict)


_unread: ContextVar[Unread | None] = ContextVar("unread", default=None)


@contextmanager
def noted() -> Iterator[Unread]:
    """Collect what cannot be read inside. An outer block collects it, too."""
    outer, inner = _unread.get(), Unread()
    token = _unread.set(inner)
    try:
        yield inner
    finally:
        _unread.reset(token)
        if outer is not None:
            outer.parts |= inner.parts
            outer.texts |= inner.texts


def part_lost(root: Root) -> None:
    unreadable(root.damage)
    if (unread := _unread.get()) is not None:
        unread.parts[root.id] = root


def text_lost(root: Root, document: str) -> None:
    unreadable(root.damage)
    if (unread := _unread.get()) is not None:
        unread.texts[root.id, document] = root
