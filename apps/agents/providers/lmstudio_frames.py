"""What a model in LM Studio says, folded into ModelEvents."""

from collections.abc import Sequence
from uuid import uuid4

from apps.agents.events import Heartbeat, ModelEvent, ToolCallRequested, UsageReported
from apps.agents.limits import max_recorded_calls, truncate_call
from apps.agents.messages import ToolCall, Usage
from apps.agents.providers.calls import checked
from apps.agents.providers.characters import Characters, clean
from apps.agents.reasoning import MarkerParser
from apps.lmstudio.types import (
    ModelLoading,
    PredictionEnd,
    PredictionEvent,
    TextFragment,
    ToolCallReceived,
)

BEGIN, END = "<think>", "</think>"

# Why an answer that has ended is not whole.
UNFINISHED = {
    "userStopped": "The answer was stopped in LM Studio.",
    "modelUnloaded": "The model was unloaded before the answer was complete.",
    "failed": "LM Studio failed before the answer was complete.",
    "maxPredictedTokensReached": (
        "The model reached its output limit before the answer was complete."
    ),
    "contextLengthReached": (
        "The answer has filled the model's context: load the model in LM Studio with a longer one."
    ),
}


class Round:
    """One round's answer. `feed` it all that is heard, then `end` it, then ask what is `wrong`."""

    def __init__(self) -> None:
        self._parser = MarkerParser()
        self._characters = Characters()
        self._thinking = False
        self._calls: list[ToolCall] = []
        self._ended: PredictionEnd | None = None

    def feed(self, heard: PredictionEvent) -> Sequence[ModelEvent]:
        match heard:
            case TextFragment():
                return self._said(heard)
            case ToolCallReceived():
                if len(self._calls) < max_recorded_calls():
                    self._calls.append(_call(heard))
                return [Heartbeat()]
            case ModelLoading():
                return [Heartbeat()]
            case PredictionEnd():
                self._ended = heard
                usage = Usage(heard.prompt, heard.predicted, heard.total)
                return [] if usage == Usage() else [UsageReported(usage)]

    def _said(self, said: TextFragment) -> Sequence[ModelEvent]:
        """Models whose thinking LM Studio does not know put markers into their text; where it does,
        the fragments say so, and markers are put between them: one parser for both."""
        if said.kind not in ("none", "reasoning"):
            # The tag itself, in the model's own spelling.
            return [Heartbeat()]
        thinking = said.kind == "reasoning"
        marker = "" if thinking == self._thinking else BEGIN if thinking else END
        self._thinking = thinking
        text = self._characters.feed(said.text)
        return self._parser.feed(marker + text) or [Heartbeat()]

    def end(self) -> Sequence[ModelEvent]:
        """What was held back and, if the round came to its end, the calls."""
        events: list[ModelEvent] = [*self._parser.flush()]
        if self._ended and not self.wrong:
            events += [ToolCallRequested(call) for call in self._calls]
        return events

    @property
    def wrong(self) -> str | None:
        """In a sentence, why the answer is not whole."""
        return UNFINISHED.get(self._ended.reason) if self._ended else None


def _call(asked: ToolCallReceived) -> ToolCall:
    id, name = clean(asked.id or "") or f"call_{uuid4().hex[:24]}", clean(asked.name)
    return truncate_call(checked(ToolCall(id, name), asked.arguments))
