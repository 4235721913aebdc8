"""A provider that says what it is told to, when it is told to: a real Provider, without a model."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from apps.agents.events import ModelEvent, TextDelta
from apps.agents.prompts import SYSTEM_PROMPT
from apps.agents.providers.base import Availability, Model, ModelRequest


class Gate:
    """A place in a script at which the provider waits until the test opens it."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()


Step = ModelEvent | Gate | Exception


class ScriptedProvider:
    """Each round plays one script, the last one again and again; requests are kept for the test."""

    label = "Scripted"
    system_prompt = SYSTEM_PROMPT

    def __init__(self, *rounds: Sequence[Step], id: str = "openai") -> None:
        self.id = id
        self.rounds = rounds or ([TextDelta("an answer")],)
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.offered = Availability(available=True)
        self.models_error: Exception | None = None

    async def origin(self) -> str:
        return "http://model.test:1234"

    async def availability(self) -> Availability:
        return self.offered

    async def models(self) -> Sequence[Model]:
        if self.models_error:
            raise self.models_error
        return (Model("m-1", "Model one"),)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        script = self.rounds[min(len(self.requests), len(self.rounds)) - 1]
        try:
            for step in script:
                match step:
                    case Gate():
                        step.reached.set()
                        await step.open.wait()
                    case Exception():
                        raise step
                    case _:
                        yield step
        finally:
            self.closed += 1


class Stubborn(ScriptedProvider):
    """Goes on for a while after it was told to stop."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        gate: Any = self.rounds[0][0]
        yield TextDelta("begun")
        while not gate.open.is_set():
            gate.reached.set()
            try:
                await gate.open.wait()
            except asyncio.CancelledError:
                continue
        yield TextDelta(" too late")
