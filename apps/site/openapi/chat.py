"""Questions, and who answers them."""

from apps.agents.providers.codex.flags import FLAGS, CodexFlag
from apps.conversations.models import ID_PATTERN
from apps.core.config import PROVIDERS
from apps.core.errors import Conflict, InvalidInput, Unavailable
from apps.core.types import JSON
from apps.core.values.json_schema import (
    BOOLEAN,
    NOT_BLANK,
    TEXT,
    list_schema,
    object_schema,
    one_of,
)
from apps.retrieval.query import MAX_AREAS, MAX_ID, MAX_PATH
from apps.site.openapi.operation import Operation

# JSON Schema is in the dialect of JavaScript, which knows neither \A nor \Z.
ID = TEXT | {"pattern": ID_PATTERN.replace(r"\A", "^").replace(r"\Z", "$"), "examples": ["first"]}
AVAILABILITY = {"available": BOOLEAN, "toolsAvailable": BOOLEAN}
PROVIDER = object_schema(
    {"id": one_of(*PROVIDERS), "label": TEXT, **AVAILABILITY}, {"reason": TEXT}
)
MODEL = object_schema({"key": TEXT, "displayName": TEXT, "type": TEXT})
MODELS = {"provider": one_of(*PROVIDERS), **AVAILABILITY, "models": list_schema(MODEL)}


# A repository's id, or a tab and a path after it: `click\tsrc/`.
AREA = TEXT | {"minLength": 1, "maxLength": MAX_ID + MAX_PATH + 1, "examples": ["click\tsrc/"]}


def flag_schema(flag: CodexFlag) -> JSON:
    return one_of(*flag.choices) if flag.choices else BOOLEAN


QUESTION = object_schema(
    {"model": NOT_BLANK | {"maxLength": 255}, "conversationId": ID, "message": NOT_BLANK},
    {
        "provider": one_of(*PROVIDERS),
        "inflightId": ID,
        "threadId": TEXT,
        "parentTurnId": TEXT | {"type": ["string", "null"], "minLength": 1},
        "cancelOnDisconnect": BOOLEAN,
        "scope": list_schema(AREA) | {"maxItems": MAX_AREAS},
        **{flag.name: flag_schema(flag) for flag in FLAGS},
    },
)
# Only this process has it.
NOT_STORED = {"stored": {"const": False}}
STARTED = object_schema(
    {
        "status": {"const": "started"},
        **dict.fromkeys(("conversationId", "inflightId", "provider", "model"), TEXT),
    },
    NOT_STORED,
)
UNAVAILABLE = Unavailable(
    "The provider is not available.",
    code="PROVIDER_UNAVAILABLE",
    details={"provider": "<provider>"},
)
ARCHIVED = Conflict("The conversation is archived.", code="CONVERSATION_ARCHIVED")
RUNNING = Conflict("Conversation already has an active run.", code="RUN_IN_PROGRESS")

OPERATIONS = {
    "POST /chat": Operation(
        "Ask a question; with Accept: text/event-stream, the answer is a stream",
        {202: STARTED},
        (
            *(UNAVAILABLE, ARCHIVED, RUNNING),
            InvalidInput("provider is not known", code="UNSUPPORTED_PROVIDER"),
            InvalidInput("The turn is not of this conversation.", code="INVALID_PARENT"),
        ),
        body=QUESTION,
        media={"text/event-stream": TEXT},
    ),
    "GET /chat/providers": Operation(
        "Who can answer", {200: object_schema({"providers": list_schema(PROVIDER)})}
    ),
    "GET /chat/models": Operation(
        "The models of a provider",
        {
            200: object_schema(MODELS, {"reason": TEXT}),
            503: object_schema({"error": TEXT, **MODELS, "reason": TEXT}),
        },
        query={"provider": TEXT | {"description": "Any other word means lmstudio."}},
    ),
}
