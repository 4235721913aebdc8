"""Any OpenAI-compatible server: the real SDK on a real socket, before a scripted stand-in."""

from collections.abc import Sequence
from itertools import chain

from tests.agents.cast import NOTHING_INGESTED
from tests.agents.rigs.base import ERROR, HALF, SEARCHED, TIMEOUT, Play, Rig, Stage
from tests.stand_ins.openai_scripts import PLAIN, THOUGHT, Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn

SLOW_ANSWER = "It is in `acme/src/net.py:12-14`. " + " ".join(
    f"Sentence {n} of a slow answer." for n in range(1, 26)
)
NO_PLACE = SLOW_ANSWER.replace("`acme/src/net.py:12-14`", "no place at all")


class OpenAIStage(Stage):
    def __init__(self, server: OpenAIStandIn) -> None:
        self.server = server

    def saying(self, pieces: Sequence[str]) -> str:
        said = chain.from_iterable(say(piece, len(piece)) for piece in pieces if piece)
        self.server.scripts["made up"] = Script([[*said, *end()]])
        return "made up"

    def idle(self) -> bool:
        return all(exchange.done.wait(30) for exchange in self.server.chats)


RIG = Rig(
    provider="openai",
    stage="openai_stage",
    plays=(
        Play("text", "plain", PLAIN),
        Play("thinking between tags", "think", "Hello!", reasoning=THOUGHT),
        Play("thinking in channels", "harmony", "Hello!", reasoning=THOUGHT),
        Play("thinking in a field", "reasoning", "Hello!", reasoning=THOUGHT),
        Play("thinking in another field", "reasoning-field", "Hello!", reasoning=THOUGHT),
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
        Play(
            "arguments that are not JSON",
            "bad-arguments",
            "My arguments were wrong.",
            tools=(("VectorSearch", "VALIDATION_FAILED"),),
        ),
        Play("searching without end", "endless-tools", tools=SEARCHED * 5, end=ERROR),
        Play("an empty answer", "empty", end=ERROR),
        Play("10,000 tokens", "tokens-10000", "".join(f"{n} " for n in range(10_000))),
        Play("no token counts", "no-usage", "Hello!"),
        Play("an error before: a server error", "status-500", end=ERROR),
        Play("an error before: too many requests", "status-429", end=ERROR),
        Play("an error before: a refused key", "status-401", end=ERROR, retryable=False),
        Play("an error before: a forbidden model", "status-403", end=ERROR, retryable=False),
        Play("an error before: an unknown model", "nobody", end=ERROR, retryable=False),
        Play("an error before: a refused request", "status-400", end=ERROR, retryable=False),
        Play("an error before: a redirect", "status-307", end=ERROR, retryable=False),
        Play("an error in the middle", "error-middle", HALF, end=ERROR),
        Play("a malformed frame", "malformed", HALF, end=ERROR),
        Play("a cut connection", "cut-middle", HALF, end=ERROR),
        Play("a cut at the output limit", "length", HALF, end=ERROR),
        Play("a content filter", "filtered", HALF, end=ERROR),
        Play("silence from the start", "stall", end=TIMEOUT),
        Play("silence in the middle", "stall-middle", HALF, end=TIMEOUT),
    ),
    cuts=[[f"{how}-{at}" for at in range(0, 1800, 75)] for how in ("cut", "quiet-cut")],
)
