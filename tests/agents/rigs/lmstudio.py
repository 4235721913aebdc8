"""LM Studio: its own SDK on a real socket, before a scripted stand-in."""

from collections.abc import Sequence
from itertools import chain

from tests.agents.cast import NOTHING_INGESTED
from tests.agents.rigs.base import ERROR, HALF, SEARCHED, TIMEOUT, Play, Rig, Stage
from tests.agents.rigs.openai import NO_PLACE, SLOW_ANSWER
from tests.stand_ins.lmstudio_scripts import Script, end, say
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_scripts import PLAIN, THOUGHT


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
        Play("text", "plain", PLAIN),
        Play("text after the model was loaded", "loads", "Hello!"),
        Play("thinking between tags", "think", "Hello!", reasoning=THOUGHT),
        Play("thinking in channels", "harmony", "Hello!", reasoning=THOUGHT),
        Play("thinking in fragments of its own", "reasoning", "Hello!", reasoning=THOUGHT),
        Play("thinking that never ends", "think-open", reasoning=THOUGHT, end=ERROR),
        Play("one tool", "tool", SLOW_ANSWER, tools=SEARCHED),
        Play(
            "one tool between thinking and answer",
            "slow-tool",
            f"Let me look. {SLOW_ANSWER}",
            reasoning="I should look this up first.",
            tools=SEARCHED,
        ),
        Play(
            "several tools",
            "two-tools",
            SLOW_ANSWER,
            tools=(("ListIngestedRepositories", None), *SEARCHED),
        ),
        Play(
            "a tool that fails",
            "tool",
            NO_PLACE,
            tools=(("VectorSearch", "INGEST_REQUIRED"),),
            offered=NOTHING_INGESTED,
        ),
        Play(
            "an unknown tool",
            "unknown-tool",
            "There is no such tool.",
            tools=(("DeleteEverything", "UNKNOWN_TOOL"),),
        ),
        Play("a call that cannot be read", "failed-call", HALF, end=ERROR),
        Play("searching without end", "endless-tools", tools=SEARCHED * 5, end=ERROR),
        Play("an empty answer", "empty", end=ERROR),
        Play("10,000 tokens", "tokens-10000", "".join(f"{n} " for n in range(10_000))),
        Play("an error before", "fault", end=ERROR),
        Play("an error before: an unknown model", "nobody", end=ERROR, retryable=False),
        Play("an error in the middle of the channel", "fault-middle", HALF, end=ERROR),
        Play("an error in the middle of the prediction", "error-middle", HALF, end=ERROR),
        Play("a malformed frame", "malformed", HALF, end=ERROR),
        Play("a frame that belongs nowhere", "stranger", HALF, end=ERROR),
        Play("a cut connection", "cut-middle", HALF, end=ERROR),
        Play("a channel closed too early", "closed-early", HALF, end=ERROR),
        Play("a cut at the output limit", "length", HALF, end=ERROR),
        Play("a context that is full", "context-full", HALF, end=ERROR),
        Play("a model that is unloaded", "unloaded", HALF, end=ERROR),
        Play("silence from the start", "stall", end=TIMEOUT),
        Play("silence in the middle", "stall-middle", HALF, end=TIMEOUT),
    ),
    # "plain" is eight fragments, a success and the channel's end.
    cuts=[[f"cut-{frames}" for frames in range(10)]],
)
