"""LM Studio: its own SDK on a real socket, before a scripted stand-in."""

from collections.abc import Sequence
from itertools import chain

from tests.agents.rigs.base import ERROR, HALF, Play, Rig, Stage
from tests.agents.rigs.shared import PLAYS
from tests.stand_ins.lmstudio_scripts import Script, end, say
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_scripts import THOUGHT


class LMStudioStage(Stage):
    def __init__(self, server: LMStudioStandIn) -> None:
        self.server = server

    def saying(self, pieces: Sequence[str]) -> str:
        said = chain.from_iterable(say(piece, len(piece)) for piece in pieces if piece)
        self.server.scripts["made up"] = Script([[*said, *end()]])
        return "made up"

    def idle(self) -> bool:
        return all(prediction.ended.wait(30) for prediction in self.server.predictions)


RIG = Rig(
    provider="lmstudio",
    stage="lmstudio_stage",
    plays=(
        *PLAYS,
        Play("text after the model was loaded", "loads", "Hello!"),
        Play("thinking in fragments of its own", "reasoning", "Hello!", reasoning=THOUGHT),
        Play("a call that cannot be read", "failed-call", HALF, end=ERROR),
        Play("an error before", "fault", end=ERROR),
        Play("an error before: an unknown model", "nobody", end=ERROR, retryable=False),
        Play("an error in the middle of the channel", "fault-middle", HALF, end=ERROR),
        Play("an error in the middle of the prediction", "error-middle", HALF, end=ERROR),
        Play("a malformed frame", "malformed", HALF, end=ERROR),
        Play("a frame that belongs nowhere", "stranger", HALF, end=ERROR),
        Play("a channel closed too early", "closed-early", HALF, end=ERROR),
        Play("a context that is full", "context-full", HALF, end=ERROR),
        Play("a model that is unloaded", "unloaded", HALF, end=ERROR),
    ),
    # "plain" is eight fragments, a success and the channel's end.
    cuts=[[f"cut-{frames}" for frames in range(10)]],
)
