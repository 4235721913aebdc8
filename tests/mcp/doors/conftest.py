"""A caller without a wire, the scripted providers of the chat, and the product's own tools."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from apps.core.types import JSON
from apps.mcp.types import Call, McpTool
from tests.mcp.speech import PATIENCE
from tests.support.chat import nothing_left_running, scripted

__all__ = ["caller", "nothing_left_running", "scripted"]


@dataclass
class Caller:
    """Calls a tool as an endpoint would; keeps the progress it was told of."""

    progress: list[str] = field(default_factory=list)
    grown: asyncio.Event = field(default_factory=asyncio.Event)

    async def report(self, message: str, done: float | None, total: float | None) -> None:
        self.progress.append(message)
        self.grown.set()

    async def call(self, tool: McpTool, **arguments: object) -> JSON:
        call = Call("2025-11-25", self.report)
        return await asyncio.wait_for(tool.run(arguments, call), PATIENCE)

    async def hears(self, message: str) -> None:
        while message not in self.progress:
            self.grown.clear()
            await asyncio.wait_for(self.grown.wait(), PATIENCE)


@pytest.fixture
def caller(configure: Callable[..., None]) -> Caller:
    configure(mcp_provider="openai")
    return Caller()
