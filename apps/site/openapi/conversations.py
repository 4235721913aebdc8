"""Conversations and their turns."""

from apps.conversations.models import Source
from apps.core.config import PROVIDERS
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.values.json_schema import (
    BOOLEAN,
    COUNT,
    OBJECT,
    TEXT,
    TIME,
    closed,
    list_schema,
    object_schema,
    one_of,
    or_null,
)
from apps.site.openapi.chat import NOT_STORED
from apps.site.openapi.operation import Operation

OK = object_schema({"status": {"const": "ok"}})
RATING = {"type": "integer", "enum": [1, -1], "description": "1: a good answer; -1: a bad one."}
TAGGED = object_schema({"status": {"const": "ok"}, "tags": list_schema(TEXT)})
CONVERSATION = object_schema(
    {
        "conversationId": TEXT,
        "provider": TEXT,
        "model": TEXT,
        "title": TEXT,
        "source": one_of(*Source.values),
        "lastMessageAt": TIME,
        "archived": BOOLEAN,
        "flags": OBJECT,
        "tags": list_schema(TEXT),
        "createdAt": TIME,
        "updatedAt": TIME,
    },
    {"agentName": TEXT},
)
TURN = object_schema(
    {
        "turnId": TEXT,
        "conversationId": TEXT,
        "role": one_of("user", "assistant", "system"),
        "content": TEXT,
        "model": TEXT,
        "provider": one_of(*PROVIDERS),
        "source": one_of(*Source.values),
        "toolCalls": or_null(OBJECT),
        "status": one_of("ok", "stopped", "failed"),
        "createdAt": TIME,
    },
    dict.fromkeys(("command", "usage", "timing", "error"), OBJECT)
    | {"rating": RATING}
    | NOT_STORED,
)
INFLIGHT = object_schema(
    {
        "inflightId": TEXT,
        "assistantText": TEXT,
        "assistantThink": TEXT,
        "toolEvents": list_schema(OBJECT),
        "startedAt": TIME,
        "seq": COUNT,
    },
    {"command": OBJECT},
)
WORD = TEXT | {"minLength": 1}
CURSOR = TEXT | {"description": "The nextCursor of the page before."}

INVALID = (
    InvalidInput("Wrong.", code="validation_error", details={"details": {"limit": ["Wrong."]}}),
    InvalidInput("The body must be valid JSON.", code="validation_error"),
)
NO_CONVERSATION = NotFound("There is no such conversation.")
ARCHIVED = Conflict("The conversation is archived.", code="CONVERSATION_ARCHIVED")
IDS = closed(
    object_schema({"conversationIds": list_schema(WORD) | {"minItems": 1, "maxItems": 1000}})
)
CONFLICT = Conflict(
    "Some conversations do not exist or are in the wrong state.",
    code="BATCH_CONFLICT",
    details={"details": {"invalidIds": [], "invalidStateIds": []}},
)


def bulk(summary: str, counted: str) -> Operation:
    """An operation on several conversations: all or none."""
    answer = object_schema({"status": {"const": "ok"}, counted: COUNT})
    return Operation(summary, {200: answer}, (CONFLICT,), body=IDS)


def archiving(summary: str) -> Operation:
    return Operation(summary, {200: OK}, (NO_CONVERSATION,))


OPERATIONS = {
    "GET /conversations": Operation(
        "Conversations, last message first",
        {200: object_schema({"items": list_schema(CONVERSATION)}, {"nextCursor": TEXT})},
        (*INVALID, InvalidInput("state must be one of: active, archived, all")),
        {
            "limit": {"type": "integer", "description": "1 to 100, by default 20."},
            "cursor": CURSOR,
            "state": one_of("active", "archived", "all"),
            "archived": BOOLEAN | {"description": "true is the older form of state=all."},
            "agentName": TEXT | {"description": "__none__: conversations without an agent."},
            "tag": TEXT | {"description": "A tag that they have."},
        },
    ),
    "POST /conversations": Operation(
        "Create a conversation", {201: object_schema({"conversationId": TEXT})}, INVALID
    ),
    "POST /conversations/{conversation_id}/archive": archiving("Archive a conversation"),
    "POST /conversations/{conversation_id}/restore": archiving("Restore a conversation"),
    "GET /conversations/{conversation_id}/turns": Operation(
        "All turns and the answer in progress; with limit or cursor, a page of finished turns",
        {
            200: object_schema(
                {"items": list_schema(TURN)}, {"inflight": INFLIGHT, "nextCursor": TEXT}
            )
        },
        (*INVALID, NO_CONVERSATION),
        {"limit": {"type": "integer", "description": "1 to 200, by default 50."}, "cursor": CURSOR},
    ),
    "POST /conversations/{conversation_id}/turns": Operation(
        "Add a turn", {201: OK}, (*INVALID, NO_CONVERSATION, ARCHIVED)
    ),
    "POST /conversations/{conversation_id}/turns/{turn_id}/rating": Operation(
        "Rate an answer; null withdraws the rating",
        {200: OK},
        (*INVALID, NotFound("Answer not found.")),
        body=closed(object_schema({"rating": or_null(RATING)})),
    ),
    "POST /conversations/{conversation_id}/tags": Operation(
        "Give a conversation these tags and no others",
        {200: TAGGED},
        (*INVALID, NO_CONVERSATION),
        body=closed(object_schema({"tags": list_schema(TEXT)})),
    ),
    "GET /conversations/{conversation_id}/events": Operation(
        "The events of the newest answer that come after Last-Event-ID",
        {204: {}},
        (NO_CONVERSATION,),
        {"lastEventId": TEXT | {"description": "The same, if the header is missing."}},
        {"Last-Event-ID": TEXT | {"description": "The id of the last event that you have."}},
        media={"text/event-stream": TEXT},
    ),
    "POST /conversations/{conversation_id}/cancel": Operation(
        "Stop the answer in progress",
        {202: OK},
        (*INVALID, NotFound("There is no run.", code="INFLIGHT_NOT_FOUND")),
        body=closed(object_schema({}, {"inflightId": WORD | {"maxLength": 128}})),
        body_required=False,
    ),
    "POST /conversations/bulk/archive": bulk("Archive several conversations", "updatedCount"),
    "POST /conversations/bulk/restore": bulk("Restore several conversations", "updatedCount"),
    "POST /conversations/bulk/delete": bulk("Delete archived conversations", "deletedCount"),
}
