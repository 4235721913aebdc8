"""The log."""

from apps.core.errors import InvalidInput
from apps.core.values.json_schema import (
    BOOLEAN,
    COUNT,
    OBJECT,
    TEXT,
    TIME,
    list_schema,
    object_schema,
    one_of,
)
from apps.logs.types import LEVELS, SOURCES
from apps.site.openapi.operation import Operation

NEW_ENTRY = object_schema(
    {"level": one_of(*LEVELS), "message": TEXT, "timestamp": TIME, "source": one_of(*SOURCES)},
    {
        **dict.fromkeys(("requestId", "correlationId", "userAgent", "url", "route"), TEXT),
        "tags": list_schema(TEXT),
        "context": OBJECT,
    },
)
ENTRY = object_schema({**NEW_ENTRY["properties"], "sequence": COUNT}, None) | {
    "required": [*NEW_ENTRY["required"], "sequence"]
}
MILLISECONDS = {"type": "integer", "description": "Unix time in milliseconds."}
FILTERS = {
    "level": TEXT | {"description": "error, warn, info or debug; several with commas."},
    "source": TEXT | {"description": "server or client; several with commas."},
    "text": TEXT | {"description": "Searched in message, context and ids, case-insensitive."},
    "since": MILLISECONDS,
    "until": MILLISECONDS,
    "sinceSequence": {"type": "integer", "description": "Only entries after this number."},
    "limit": {"type": "integer", "description": "1 to 200, by default 200."},
}
INVALID_QUERY = InvalidInput("since must be a whole number.", code="INVALID_QUERY")

OPERATIONS = {
    "POST /logs": Operation(
        "Store an entry or several, all or none",
        {202: object_schema({"status": {"const": "accepted"}, "sequence": COUNT})},
        body={"anyOf": [NEW_ENTRY, list_schema(NEW_ENTRY) | {"minItems": 1}]},
    ),
    "GET /logs": Operation(
        "The newest matching entries, oldest first. With Accept: text/html, the Logs page",
        {
            200: object_schema(
                {"items": list_schema(ENTRY), "lastSequence": COUNT, "hasMore": BOOLEAN}
            )
        },
        (INVALID_QUERY,),
        FILTERS,
    ),
    "GET /logs/stream": Operation(
        "Stored entries, then each new one; `skipped` counts those left out after a reconnect",
        {},
        (INVALID_QUERY,),
        FILTERS,
        {"Last-Event-ID": TEXT | {"description": "Replay the entries after this number."}},
        media={"text/event-stream": TEXT},
    ),
}
