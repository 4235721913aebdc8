"""`/ws/ui/chat/<conversationId>`: live updates of a chat page, as HTML fragments.

The page's first message states its turns and the version of its conversation list,
`{"turns": {id: status}, "list": version}`. The consumer sends what has changed since, so a page
that reconnects shows the same as after a reload. Then it follows the event log of every run of the
conversation.
"""

import asyncio
import json
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError
from django.template.loader import render_to_string

from apps.conversations import memory, queries, transcript
from apps.conversations.answers.exchange import Exchange, exchange_of, exchanges_of
from apps.conversations.models import Turn
from apps.conversations.queries import topic_of
from apps.conversations.renderers import html
from apps.conversations.stream import RunLog, Snapshot, live_runs
from apps.conversations.types import Outcome
from apps.core.concurrency.hub import Subscription, hub
from apps.core.errors import CodeinfoError
from apps.core.principal import current

logger = logging.getLogger("codeinfo.conversations")

UPDATE_SECONDS = 0.05  # at most 20 updates a second
# Poll interval for runs of other processes.
FOREIGN_SECONDS = 1.0
SIDEBAR_SECONDS = 0.5
BAD_MESSAGE, SERVER_FAILED = 1008, 1011

# How often an open page learns whether the database answers.
DATABASE_SECONDS = 5.0

# By these names, so that a test can have a clock of its own
pause = asyncio.sleep
between_looks = asyncio.sleep


class ChatPageConsumer(AsyncWebsocketConsumer):
    """One open chat page. `has`: status by turn id of the turns that the page shows."""

    async def connect(self) -> None:
        self.conversation_id = self.scope["url_route"]["kwargs"]["conversation_id"]
        self.has: dict[str, str] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        await self.accept()

    async def disconnect(self, code: int) -> None:
        for task in self.tasks:
            task.cancel()

    async def receive(self, text_data: str = "", bytes_data: bytes | None = None) -> None:
        """The page's first message; a later one (the page swapped its content) starts over."""
        try:
            turns, mark = _page_state(text_data)
        except ValueError:
            await self.close(code=BAD_MESSAGE)
            return
        for task in self.tasks:
            task.cancel()
        self.has = turns
        self.tasks = {
            asyncio.create_task(self._quietly(work))
            for work in (self._follow_runs(), self._follow_sidebar(mark), self._follow_database())
        }

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        # The client may disconnect at any time.
        with suppress(ConnectionError):
            try:
                await work
            except (DatabaseError, CodeinfoError) as error:
                # The page reconnects and is then updated.
                logger.warning("chat page not followed: %s", error)
                await self.close(code=SERVER_FAILED)

    # The conversation

    async def _follow_runs(self) -> None:
        topic = f"conversation:{self.conversation_id}"
        with live_runs.follow(self.conversation_id) as begun, hub.subscribe(topic) as changes:
            # Followed before the live run is read, so that no run is missed.
            live = live_runs.visible(self.conversation_id)
            await self._catch_up(live, begun)
            if live is not None:
                await self._follow(live)
            while True:
                log = await _next_run(begun, changes)
                if log is not None:
                    await self._follow(log)
                else:
                    await self._catch_up(live_runs.visible(self.conversation_id), begun)

    async def _catch_up(self, live: RunLog | None, begun: "asyncio.Queue[RunLog]") -> None:
        """Send every turn that is missing or outdated on the page, except the live one."""
        views = await self._branch()
        for view in self._from_first_shown(views):
            if live is not None and view.id == live.turn_id:
                continue
            if view.running:
                await self._watch(view, begun)
            elif self.has.get(view.id) != view.status:
                await self._put(view, await _rendered(view))
        if live is None:
            await self.send(_action(running=False))

    async def _branch(self) -> list[Exchange]:
        """The branch that is followed. Removes from the page what is on another one, and renews the
        link to what is not shown."""
        views: list[Exchange]
        views, are_all, whole_url = await exchanges(self.conversation_id)
        gone = sorted(self.has.keys() - {view.id for view in views})
        if gone and are_all:
            for turn in gone:
                del self.has[turn]
            earlier = len(views) - len(self._from_first_shown(views))
            link = _earlier(earlier, whole_url)
            await self.send("".join(html.removed(f"turn-{turn}") for turn in gone) + link)
        return views

    def _from_first_shown(self, views: list[Exchange]) -> list[Exchange]:
        """Leave out exchanges above the first one that the page shows (`SHOWN_EXCHANGES`)."""
        shown = (index for index, view in enumerate(views) if view.id in self.has)
        return views[next(shown, max(0, len(views) - transcript.SHOWN_EXCHANGES)) :]

    async def _follow(self, log: RunLog) -> None:
        """A run of this process, from what it has said so far to its end."""
        live, now = html.LiveExchange(), log.snapshot()
        view = view_of(log, now)
        # Drawing is for threads: a long list or block of code takes its time.
        article = await asyncio.to_thread(live.whole, view)
        if log.forks:
            await self._branch()
        await self._put(view, article, _action(running=True))
        while not log.finished:
            with suppress(TimeoutError):
                async with asyncio.timeout(live.thinking_due()):
                    await log.wait(now.seq)
            now = log.snapshot()
            view = view_of(log, now)
            if live.is_outdated(view):
                live = html.LiveExchange()
                await self._put(view, await asyncio.to_thread(live.whole, view))
            fragments = await asyncio.to_thread(live.changes, view)
            if fragments:
                await self.send("".join(fragments))
            await pause(UPDATE_SECONDS)
        saved = await _exchange(log.conversation_id, log.turn_id)
        await self._finish(log.turn_id, _as_logged(log) if saved and saved.running else saved)

    async def _watch(self, view: Exchange, begun: "asyncio.Queue[RunLog]") -> None:
        """Follow a run of another process by polling its row."""
        await self._put(view, await _rendered(view), _action(running=True))
        while await _is_running(view.id):
            if not begun.empty():
                return  # it runs in this process and has just started: its log is next
            await asyncio.sleep(FOREIGN_SECONDS)
        await self._finish(view.id, await _exchange(view.conversation_id, view.id))

    async def _finish(self, turn_id: str, view: Exchange | None) -> None:
        """Send the saved turn, the same HTML as after a reload. None: the turn was deleted."""
        idle = _action(running=False)
        if view is None:
            await self.send(html.removed(f"turn-{turn_id}") + idle)
            return
        announcement = html.inner(await asyncio.to_thread(_end_of, view), "say")
        await self._put(view, await _rendered(view), announcement + idle)

    async def _put(self, view: Exchange, article: str, more: str = "") -> None:
        """Send an exchange: replace it on the page, or append it."""
        known = view.id in self.has
        self.has[view.id] = view.status
        fragment = html.replacing(article) if known else html.append(article, "turns")
        await self.send(fragment + more)

    # The sidebar

    async def _follow_sidebar(self, mark: str) -> None:
        """Notify the page to reload its list of conversations and its title."""
        topic = topic_of(current())
        with hub.subscribe(topic) as changes:
            if mark != hub.version(topic):
                changes.wake(self.conversation_id)
            while True:
                await changes.next_batch()
                await self.send(render_to_string("conversations/_pulse.html"))
                await asyncio.sleep(SIDEBAR_SECONDS)

    # The database

    async def _follow_database(self) -> None:
        """Tell the page when the database goes away and comes back: what writes is disabled then
        (static/js/chat/bulk.js)."""
        known = False
        while True:
            away = await database_sync_to_async(memory.database_away)()
            if away != known:
                known = away
                context = {"away": away, "conversation_id": self.conversation_id, "oob": True}
                await self.send(render_to_string("conversations/_away.html", context))
            await between_looks(DATABASE_SECONDS)


async def _next_run(begun: "asyncio.Queue[RunLog]", changes: Subscription) -> RunLog | None:
    """Return the next run of this process; None if a notice comes first, for example about a run of
    another process."""
    run, notice = asyncio.create_task(begun.get()), asyncio.create_task(changes.next_batch())
    try:
        await asyncio.wait((run, notice), return_when=asyncio.FIRST_COMPLETED)
        return run.result() if run.done() else None
    finally:
        for task in (run, notice):
            task.cancel()
        await asyncio.wait((run, notice))


def view_of(log: RunLog, now: Snapshot) -> Exchange:
    """The exchange of a live run at a snapshot."""
    return Exchange(
        id=log.turn_id,
        conversation_id=log.conversation_id,
        question=log.user_text,
        question_id=log.user_turn_id,
        at=log.started_at,
        status=Turn.Status.RUNNING,
        parts=now.parts,
        provider=log.provider,
        model=log.model,
        command=log.command,
        warnings=now.warnings,
    )


def _as_logged(log: RunLog) -> Exchange:
    """The exchange of a run whose end could not be saved."""
    end = Outcome.of(log.end)
    return replace(view_of(log, log.snapshot()), status=end.status, error=end.error)


def _page_state(text: str) -> tuple[dict[str, str], str]:
    """Status by turn id, and the version of the list, that a page shows. Raises ValueError."""
    try:
        shown = json.loads(text)
        turns = {str(key): str(value) for key, value in shown["turns"].items()}
        return turns, str(shown["list"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not what a page says") from error


def _earlier(number: int, whole_url: str) -> str:
    context = {"earlier": number, "whole": whole_url}
    return html.inner(render_to_string("conversations/_earlier.html", context), "earlier")


def _action(*, running: bool) -> str:
    button = render_to_string("conversations/_action.html", {"running": running})
    return html.inner(button, "action")


def _end_of(view: Exchange) -> str:
    """The text of the live region at the end of a run."""
    if view.status == Turn.Status.OK:
        count = len(html.cited(view))
        return f"Answer complete, {count} citation{'' if count == 1 else 's'}"
    return "Generation stopped" if view.status == Turn.Status.STOPPED else "The answer failed"


@database_sync_to_async
def exchanges(conversation_id: str) -> tuple[list[Exchange], bool, str]:
    """The branch that is followed; True if that is all of it: without the database, it is only what
    is not stored; and the URL of the whole branch."""
    state = memory.load(conversation_id)
    whole_url = transcript.whole(conversation_id, state.conversation)
    return exchanges_of(state.turns), state.full or not state.away, whole_url


@database_sync_to_async
def _exchange(conversation_id: str, turn_id: str) -> Exchange | None:
    unsaved = exchanges_of(memory.turns(conversation_id))
    for view in unsaved:
        if view.id == turn_id:
            return view
    answer = queries.turn(turn_id)
    if answer is None:
        return None
    question = queries.turn(str(answer.parent)) if answer.parent else None
    return exchange_of(question, answer)


@database_sync_to_async
def _is_running(turn_id: str) -> bool:
    return Turn.objects.filter(pk=turn_id, status=Turn.Status.RUNNING).exists()


async def _rendered(view: Exchange) -> str:
    return await asyncio.to_thread(html.exchange, view)
