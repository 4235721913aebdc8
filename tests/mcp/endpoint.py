"""An endpoint of a test's own, with one tool, on the address of /mcp."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from django.test import override_settings
from django.urls import path

from apps.core.types import JSON
from apps.mcp.rpc import serve
from apps.mcp.types import Annotations, Call, Contents, McpEndpoint, McpTool, always_open

Run = Callable[[Mapping[str, Any], Call], Awaitable[JSON | Contents]]
Gate = Callable[[Mapping[str, Any]], Awaitable[None]]
OPEN: JSON = {"type": "object"}


@asynccontextmanager
async def serving(
    run: Run,
    schema: JSON = OPEN,
    gate: Gate = always_open,
) -> AsyncIterator[None]:
    """Until the block ends, /mcp is an endpoint whose tool `work` does what `run` does."""
    tool = McpTool("work", "Work", "Works.", schema, OPEN, run, Annotations())
    endpoint = McpEndpoint("test", "test", "Work.", lambda: (tool,), "test2", gate)
    urls = ModuleType("urls")
    vars(urls).update(urlpatterns=[path("mcp", serve(endpoint))])
    with override_settings(ROOT_URLCONF=urls):
        yield
