"""The event stream of an answer, and its end."""

import json
import re
from typing import Any

from apps.conversations.stream import live_runs
from tests.support.chat import ended

SSE = "text/event-stream"
FRAME = re.compile(r"id: (.+)\ndata: (.+)")


async def finished() -> None:
    """Every run has ended."""
    for log in live_runs.all():
        await ended(log)


def events_of(raw: str) -> list[tuple[str, dict[str, Any]]]:
    """The id and the JSON of every data frame."""
    frames = raw.split("\n\n")
    assert frames[-1] == ""
    matches = [FRAME.fullmatch(frame) for frame in frames[:-1] if frame != ":"]
    assert all(matches), raw
    return [(match[1], json.loads(match[2])) for match in matches if match]


async def streamed(response: Any) -> str:
    return "".join([piece.decode() async for piece in response.streaming_content])
