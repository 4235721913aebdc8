"""Copies of conversations whose links have expired are deleted while the server is idle."""

import asyncio
from types import SimpleNamespace

import pytest
from django.db import DatabaseError

from apps.conversations import sharing
from apps.site import server

pytestmark = pytest.mark.door


async def test_expired_copies_are_deleted_at_the_start_and_once_a_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []

    def delete_expired() -> None:
        calls.append("delete")
        if len(calls) == 1:
            raise DatabaseError("it is away")

    async def sleep(seconds: float) -> None:
        calls.append(seconds)
        if len(calls) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(sharing, "delete_expired", delete_expired)
    monkeypatch.setattr(server, "asyncio", SimpleNamespace(sleep=sleep))
    with pytest.raises(asyncio.CancelledError):
        await server.delete_expired_copies()
    assert calls == ["delete", 86_400, "delete", 86_400]
