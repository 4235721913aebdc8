"""The tools that the official conformance suite calls, as its scenarios describe them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcp_types import INTERNAL_ERROR

from apps.core.errors import InvalidInput
from apps.core.types import JSON
from apps.logs.context import request_id
from apps.mcp.failures import MISSING_CAPABILITY
from apps.mcp.tasks import EXTENSION as TASKS
from apps.mcp.types import Call, Contents, McpTool
from apps.mcp.wire import RpcError

NOTHING: JSON = {"type": "object", "properties": {}, "additionalProperties": False}
# One red pixel, and a WAV header with no samples behind it.
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


def text(words: str) -> JSON:
    return {"type": "text", "text": words}


def resource(uri: str, kind: str, words: str) -> JSON:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


IMAGE: JSON = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO: JSON = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
EMBEDDED = resource(
    "test://embedded-resource", "text/plain", "This is an embedded resource content."
)
MIXED = resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')

Run = Callable[[Mapping[str, Any], Call], Awaitable[JSON | Contents]]


def always(*items: JSON) -> Run:
    async def run(arguments: Mapping[str, Any], call: Call) -> Contents:
        return Contents(items)

    return run


async def fail(arguments: Mapping[str, Any], call: Call) -> JSON:
    raise InvalidInput("This tool intentionally returns an error for testing")


async def count(arguments: Mapping[str, Any], call: Call) -> Contents:
    for done in (0, 50, 100):
        await call.progress("Counting", done, 100)
        await asyncio.sleep(0)
    return Contents([text("Counted to 100.")])


WAITING: set[str] = set()


async def wait(arguments: Mapping[str, Any], call: Call) -> JSON:
    """Ours, not the suite's: ends only when its caller goes away."""
    WAITING.add(request_id.get())
    try:
        await call.progress("Waiting")
        await asyncio.Event().wait()
    finally:
        WAITING.discard(request_id.get())
    return {}


async def who_waits(arguments: Mapping[str, Any], call: Call) -> JSON:
    return {"waiting": sorted(WAITING)}


async def sample(arguments: Mapping[str, Any], call: Call) -> Contents:
    if "sampling" not in call.capabilities:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise InvalidInput("Sampling is needed.", code=MISSING_CAPABILITY, details=needed)
    return Contents([text("Sampling is declared.")])


async def compute(arguments: Mapping[str, Any], call: Call) -> Contents:
    await asyncio.sleep(arguments.get("seconds", 0))
    return Contents([text(f"Computed {arguments.get('label', '')}.")])


async def greet(arguments: Mapping[str, Any], call: Call) -> Contents:
    return Contents([text(f"Hello, {arguments['name']}!")])


async def fail_as_task(arguments: Mapping[str, Any], call: Call) -> JSON:
    if TASKS not in call.capabilities.get("extensions", {}):
        needed = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise InvalidInput("Tasks are needed.", code=MISSING_CAPABILITY, details=needed)
    return await fail(arguments, call)


async def break_protocol(arguments: Mapping[str, Any], call: Call) -> JSON:
    raise RpcError(INTERNAL_ERROR, "This tool intentionally breaks off")


RICH_SCHEMA: JSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def tool(name: str, run: Run, schema: JSON = NOTHING, *, takes_long: bool = False) -> McpTool:
    words = f"Conformance: {name}"
    return McpTool(name, name, words, schema, None, run, takes_long=takes_long)


def fields(**types: str) -> JSON:
    return {"type": "object", "properties": {name: {"type": t} for name, t in types.items()}}


TOOLS: Sequence[McpTool] = (
    tool("test_simple_text", always(text("This is a simple text response for testing."))),
    tool("test_image_content", always(IMAGE)),
    tool("test_audio_content", always(AUDIO)),
    tool("test_embedded_resource", always(EMBEDDED)),
    tool("test_multiple_content_types", always(text("Multiple content types test:"), IMAGE, MIXED)),
    tool("test_error_handling", fail),
    tool("test_tool_with_progress", count),
    tool("test_missing_capability", sample),
    # We ask clients for nothing and send them no log entries: these two just answer.
    tool("test_streaming_elicitation", count),
    tool("test_logging_tool", always(text("Logged on the server only."))),
    tool("greet", greet, fields(name="string")),
    tool("slow_compute", compute, fields(seconds="number", label="string"), takes_long=True),
    tool("failing_job", fail_as_task, takes_long=True),
    tool("protocol_error_job", break_protocol, takes_long=True),
    # The suite asks for a confirmation here; we ask clients for nothing.
    tool("confirm_delete", always(text("Deleted nothing.")), fields(filename="string")),
    tool("wait", wait, takes_long=True),
    tool("who_waits", who_waits),
    tool("json_schema_2020_12_tool", always(text("Accepted.")), RICH_SCHEMA),
)
