"""The OpenAPI document of the API.

drf-spectacular derives the bodies of requests from the serializers of REST framework's views. It
cannot see the other views, so the modules of this package describe all routes. A test compares
them with the URLs (tests/site/test_openapi.py).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from apps.conversations.serializers import StrictSerializer
from apps.core import __version__
from apps.core.types import JSON
from apps.core.values.json_schema import closed
from apps.site.openapi import (
    agents,
    chat,
    conversations,
    ingest,
    lmstudio,
    logs,
    mcp,
    server,
    tools,
)
from apps.site.openapi.operation import Operation

GROUPS: Mapping[str, Mapping[str, Operation]] = {
    "Search": tools.OPERATIONS,
    "Chat": chat.OPERATIONS,
    "Conversations": conversations.OPERATIONS,
    "Agents": agents.OPERATIONS,
    "Ingest": ingest.OPERATIONS,
    "LM Studio": lmstudio.OPERATIONS,
    "Logs": logs.OPERATIONS,
    "Server": server.OPERATIONS,
}
DESCRIPTION = """\
JSON over HTTP. docs/api.md has the rules for all routes, examples and the websocket.

Every route may also answer 405 `METHOD_NOT_ALLOWED` to other methods. The bodies of errors are
listed for each route."""
SECURITY: JSON = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "CODEINFO_API_TOKEN; for the MCP endpoints CODEINFO_MCP_TOKEN.",
    },
    "session": {"type": "apiKey", "in": "cookie", "name": "sessionid"},
}


class BodiesOnly(AutoSchema):
    """Derives nothing of a view but the body that it takes, from its serializer."""

    def get_request_serializer(self) -> Any:
        return getattr(self.view, "serializer_class", None)

    def get_response_serializers(self) -> Any:
        return {}

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        mapper: Any = super()
        schema: JSON = mapper._map_basic_serializer(serializer, direction)
        return closed(schema) if isinstance(serializer, StrictSerializer) else schema


@cache
def document() -> JSON:
    """The document, which is the same for all users."""
    generator: Any = SchemaGenerator
    schema: JSON = generator().get_schema(request=None, public=True)
    return schema


def describe(result: JSON, generator: Any, request: Any, public: bool) -> JSON:
    """drf-spectacular's hook: replace what it derived, except for the bodies of requests."""
    bodies = {
        f"{method.upper()} {path}": operation["requestBody"]
        for path, methods in result["paths"].items()
        for method, operation in methods.items()
        if "requestBody" in operation
    }
    paths: JSON = {}
    for tag, operations in GROUPS.items():
        for key, operation in operations.items():
            method, path = key.split()
            paths.setdefault(path, {})[method.lower()] = operation.as_openapi(
                key, tag, bodies.get(key)
            )
    for path in mcp.ENDPOINTS:
        paths[path] = {"post": mcp.operation(path)}
    components = result.get("components", {}) | {"securitySchemes": SECURITY}
    return result | {
        "info": {"title": "codeinfo", "version": __version__, "description": DESCRIPTION},
        "tags": [{"name": tag} for tag in (*GROUPS, "MCP")],
        "paths": paths,
        "components": components,
        # Without a required login and token, no credentials are needed.
        "security": [{}, {"token": []}, {"session": []}],
    }
