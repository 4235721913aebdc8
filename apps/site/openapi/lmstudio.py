"""LM Studio."""

from apps.core.errors import InvalidInput, Unavailable
from apps.core.values.json_schema import BOOLEAN, COUNT, TEXT, list_schema, object_schema, or_null
from apps.site.openapi.operation import Operation

MODEL = object_schema(
    {
        "modelKey": TEXT,
        "displayName": TEXT,
        "type": TEXT,
        **dict.fromkeys(("format", "path", "architecture", "paramsString"), or_null(TEXT)),
        **dict.fromkeys(("sizeBytes", "maxContextLength"), or_null(COUNT)),
        **dict.fromkeys(("vision", "trainedForToolUse"), or_null(BOOLEAN)),
    }
)
STATUS = object_schema({"status": {"const": "ok"}, "baseUrl": TEXT, "models": list_schema(MODEL)})
ADDRESS = {"baseUrl": "http://127.0.0.1:1234"}
ERRORS = (
    InvalidInput("The address is wrong.", code="INVALID_BASE_URL", details=ADDRESS),
    Unavailable("LM Studio does not answer.", code="LMSTUDIO_UNAVAILABLE", details=ADDRESS),
)

OPERATIONS = {
    "GET /lmstudio/status": Operation(
        "The models of LM Studio at the address in use",
        {200: STATUS},
        (
            *ERRORS,
            InvalidInput("Ask another address with POST.", code="POST_REQUIRED", details=ADDRESS),
        ),
        {"baseUrl": TEXT | {"description": "The address in use; any other needs POST."}},
    ),
    "POST /lmstudio/status": Operation(
        "The models of LM Studio at any address, queried without the API token",
        {200: STATUS},
        ERRORS,
        body=object_schema({}, {"baseUrl": TEXT}),
        body_required=False,
    ),
}
