"""A database that another process has locked: SQLite's own lock, held for real."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, connections

from apps.agents.events import TextDelta, TurnFinished
from apps.conversations import rows, runner
from apps.conversations.models import Conversation
from apps.conversations.stream import live_runs
from tests.support.chat import answers, ended, question, reached
from tests.support.scripted import Gate

pytestmark = [
    pytest.mark.usefixtures("nothing_left_running"),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite's lock is what is tested"),
]


@pytest.fixture
def lock(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Another connection; connections that are opened from now on wait 20 ms for its lock."""
    monkeypatch.setitem(connections.settings["default"]["OPTIONS"], "timeout", 0.02)
    # Released by whichever thread finds it in its way.
    other = sqlite3.connect(
        connection.settings_dict["NAME"], isolation_level=None, check_same_thread=False
    )
    yield other
    other.close()


@pytest.mark.door
async def test_an_answer_that_ends_while_it_is_locked_is_saved_afterwards(
    lock: sqlite3.Connection, scripted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    save, attempts = rows.finish_turn, 0

    def watched(*args: Any) -> None:
        nonlocal attempts
        attempts += 1
        try:
            save(*args)
        except OperationalError:
            if attempts == 2:
                lock.rollback()
            raise

    monkeypatch.setattr(rows, "finish_turn", watched)
    monkeypatch.setattr(runner, "SAVE_PAUSES", (0, 0, 0))
    gate = Gate()
    scripted([TextDelta("all "), gate, TextDelta("of it")])
    log = await runner.start(question())
    await reached(gate.reached)
    lock.execute("BEGIN IMMEDIATE")
    gate.open.set()
    await ended(log)
    assert attempts == 3
    assert isinstance(log.end, TurnFinished)
    (turn,) = await answers()
    assert (turn.status, turn.parts) == ("ok", [{"type": "text", "text": "all of it"}])


async def test_a_question_is_refused_for_now_and_taken_when_it_comes_again(
    lock: sqlite3.Connection, scripted: Callable[..., Any], ask: Callable[..., Any]
) -> None:
    scripted([TextDelta("Because.")])
    lock.execute("BEGIN IMMEDIATE")
    refused = await ask()
    assert (refused.status_code, refused["Retry-After"]) == (503, "2")
    assert refused.json()["code"] == "DATABASE_UNAVAILABLE"
    assert not await Conversation.objects.aexists()
    lock.rollback()
    taken = await ask()
    assert taken.status_code == 202
    for log in live_runs.all():
        await ended(log)
    (turn,) = await answers()
    assert (turn.status, turn.parts[0]["text"]) == ("ok", "Because.")
