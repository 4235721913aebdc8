"""Rows as JSON: conversations, turns, and the running answer (docs/contract.md §1.1, §1.2)."""

from collections.abc import Sequence
from typing import Any

from apps.conversations.models import Conversation, Turn
from apps.conversations.parts import Part, content, tool_calls
from apps.conversations.renderers.json import inflight, inflight_of
from apps.conversations.stream import RunLog
from apps.core.types import JSON
from apps.core.values.times import wire_time

# The `content` of a turn without text and without an error message.
WITHOUT_WORDS = {Turn.Status.STOPPED: "Stopped", Turn.Status.FAILED: "Request failed"}
# In newest-first order, an answer precedes its question if their times are equal.
ROLE_ORDER = {"assistant": 0, "user": 1}


def conversation(row: Conversation) -> JSON:
    """A conversation (contract.md §1.1)."""
    wire: JSON = {
        "conversationId": row.id,
        "provider": row.provider,
        "model": row.model,
        "title": row.title,
        "source": row.source,
        "lastMessageAt": wire_time(row.last_message_at),
        "archived": row.archived,
        "flags": row.flags,
        "tags": row.tag_names,
        "createdAt": wire_time(row.created_at),
        "updatedAt": wire_time(row.updated_at),
    }
    return wire | ({"agentName": row.agent_name} if row.agent_name else {})


def turn(row: Turn, parts: Sequence[Part] | None = None) -> JSON:
    """A turn (contract.md §1.1). A running one has the status `ok`, and one that only this process
    has `stored: false`.

    parts: replace the stored parts, for a live run of this process.
    """
    shown_parts = row.parts if parts is None else parts
    running = row.status == Turn.Status.RUNNING
    wire: JSON = {
        "turnId": str(row.pk),
        "conversationId": row.conversation_id,
        "role": row.role,
        "content": content(shown_parts) or _fallback_text(row),
        "model": row.model,
        "provider": row.provider,
        "source": row.source,
        "toolCalls": tool_calls(shown_parts),
        "status": Turn.Status.OK.value if running else row.status,
        "createdAt": wire_time(row.created_at),
    }
    if row._state.adding:
        wire["stored"] = False
    optional = ("command", "usage", "timing", "error", "rating")
    return wire | {name: getattr(row, name) for name in optional if getattr(row, name)}


def not_stored(log: RunLog) -> JSON:
    """What the start of a run adds to its answer: `stored: false` if only this process has it."""
    return {} if log.stored else {"stored": False}


def _fallback_text(row: Turn) -> str:
    message = (row.error or {}).get("message")
    return message or WITHOUT_WORDS.get(Turn.Status(row.status), "")


def history(rows: Sequence[Turn], log: RunLog | None) -> JSON:
    """`{items, inflight?}`: every turn, newest first; the running answer once it has text.

    log: the live run of this process. For a run of another process, the row has the parts.
    """
    items = []
    wire: JSON = {}
    for row in rows:
        if row.status != Turn.Status.RUNNING:
            items.append((row, turn(row)))
            continue
        parts, wire["inflight"] = _inflight(row, log)
        if content(parts):
            items.append((row, turn(row, parts)))
    items.sort(key=lambda item: _order(item[0]), reverse=True)
    return {"items": [shape for _, shape in items], **wire}


def _inflight(row: Turn, log: RunLog | None) -> tuple[Sequence[Part], JSON]:
    if log is not None and log.turn_id == str(row.pk):
        now = log.snapshot()
        return now.parts, inflight_of(log, now)
    at = wire_time(row.created_at)
    return row.parts, inflight(row.inflight_id, row.parts, at, 0, row.command)


def _order(row: Turn) -> tuple[Any, ...]:
    return row.created_at, -ROLE_ORDER.get(row.role, 2), str(row.pk)
