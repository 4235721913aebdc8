"""The MCP endpoints: JSON-RPC messages (docs/mcp.md)."""

from apps.core.types import JSON
from apps.core.values.json_schema import OBJECT, TEXT, object_schema, one_of
from apps.mcp.protocol_version import NEWEST_FIRST
from apps.site.openapi.operation import DESCRIPTIONS, json_content, operation_id

ENDPOINTS = {
    "/mcp": "MCP: search, symbols and repositories",
    "/mcp/chat": "MCP: questions about the code",
    "/mcp/agents": "MCP: agents",
}
VERSION: JSON = {"jsonrpc": {"const": "2.0"}}
ID: JSON = {"type": ["string", "integer"]}
MESSAGE = object_schema({**VERSION, "method": TEXT}, {"id": ID, "params": OBJECT})
RESULT = object_schema({**VERSION, "id": ID, "result": OBJECT})
ERROR = object_schema(
    {
        **VERSION,
        "id": {"type": ["string", "integer", "null"]},
        "error": object_schema({"code": {"type": "integer"}, "message": TEXT}, {"data": OBJECT}),
    }
)
# Each answer is one of JSON-RPC, also those with these statuses.
STATUSES = (400, 401, 403, 404, 413, 415, 429, 503)
HEADERS = {
    "MCP-Protocol-Version": one_of(*NEWEST_FIRST),
    "Mcp-Method": TEXT | {"description": "The method, in stateless revisions."},
    "Mcp-Name": TEXT | {"description": "The tool that is called, in stateless revisions."},
    "Mcp-Session-Id": TEXT
    | {"description": "As `initialize` returned it; calls can then be cancelled."},
}


def operation(path: str) -> JSON:
    """The operation object of an endpoint."""
    answers: JSON = {"200": {"description": DESCRIPTIONS[200], **json_content(ANSWER)}}
    answers["200"]["content"]["text/event-stream"] = {"schema": TEXT}
    answers["202"] = {"description": "A notification was accepted."}
    for status in STATUSES:
        answers[str(status)] = {"description": DESCRIPTIONS[status], **json_content(ERROR)}
    return {
        "operationId": operation_id(f"POST {path}"),
        "summary": ENDPOINTS[path],
        "tags": ["MCP"],
        "parameters": [
            {"name": name, "in": "header", "schema": schema} for name, schema in HEADERS.items()
        ],
        "requestBody": json_content(MESSAGE) | {"required": True},
        "responses": answers,
    }


ANSWER: JSON = {"anyOf": [RESULT, ERROR]}
