"""LM Studio: its SDK on a real socket with a scripted stand-in."""

from collections.abc import Sequence
from itertools import chain

from tests.agents.rigs.base import ERROR, HALF, Backend, Rig, Scenario
from tests.agents.rigs.shared import SHARED_SCENARIOS
from tests.stand_ins.lmstudio_scripts import PredictionScript, end, say
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_scripts import THOUGHT


class LMStudioBackend(Backend):
    def __init__(self, server: LMStudioStandIn) -> None:
        self.server = server

    def add_text_model(self, pieces: Sequence[str]) -> str:
        deltas = chain.from_iterable(say(piece, len(piece)) for piece in pieces if piece)
        self.server.scripts["made up"] = PredictionScript([[*deltas, *end()]])
        return "made up"

    def idle(self) -> bool:
        return all(prediction.ended.wait(30) for prediction in self.server.predictions)


RIG = Rig(
    provider="lmstudio",
    backend="lmstudio_backend",
    scenarios=(
        *SHARED_SCENARIOS,
        Scenario("text after the model was loaded", "loads", "Hello!"),
        Scenario("thinking in fragments of its own", "reasoning", "Hello!", reasoning=THOUGHT),
        Scenario("a call that cannot be read", "failed-call", HALF, end=ERROR),
        Scenario("an error before", "fault", end=ERROR),
        Scenario("an error before: an unknown model", "nobody", end=ERROR, retryable=False),
        Scenario("an error in the middle of the channel", "fault-middle", HALF, end=ERROR),
        Scenario("an error in the middle of the prediction", "error-middle", HALF, end=ERROR),
        Scenario("a malformed frame", "malformed", HALF, end=ERROR),
        Scenario("a frame that belongs nowhere", "stranger", HALF, end=ERROR),
        Scenario("a channel closed too early", "closed-early", HALF, end=ERROR),
        Scenario("a context that is full", "context-full", HALF, end=ERROR),
        Scenario("a model that is unloaded", "unloaded", HALF, end=ERROR),
    ),
    # "plain" is eight fragments, a success and the channel's end.
    cuts=[[f"cut-{frames}" for frames in range(10)]],
)
