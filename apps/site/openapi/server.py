"""The server: health, versions, metrics, and the description itself."""

from apps.core.values.json_schema import (
    BOOLEAN,
    COUNT,
    NUMBER,
    OBJECT,
    TEXT,
    list_schema,
    object_schema,
)
from apps.site.openapi.operation import Operation

APP = {"app": {"const": "server"}, "version": TEXT}

OPERATIONS = {
    "GET /health": Operation(
        "The state of each part; always 200",
        {
            200: object_schema(
                {
                    "status": {"const": "ok"},
                    "uptime": NUMBER | {"description": "Seconds."},
                    "timestamp": COUNT | {"description": "Unix time in milliseconds."},
                    "mongoConnected": BOOLEAN | {"description": "Whether the database answers."},
                    "degraded": list_schema(TEXT),
                    "parts": OBJECT,
                }
            )
        },
        is_open=True,
    ),
    "GET /version": Operation("The version", {200: object_schema(APP)}),
    "GET /info": Operation(
        "The version, with a greeting",
        {200: object_schema({"message": TEXT, "info": object_schema(APP)})},
    ),
    "GET /metrics": Operation("Metrics in Prometheus format", {}, media={"text/plain": TEXT}),
    "GET /api/schema": Operation(
        "This description", {200: object_schema({"openapi": TEXT, "info": OBJECT, "paths": OBJECT})}
    ),
}
