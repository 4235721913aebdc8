"""OpenAI-compatible servers: a scripted stand-in on a real socket."""

from collections.abc import Sequence
from itertools import chain

from tests.agents.rigs.base import ERROR, HALF, Backend, Rig, Scenario
from tests.agents.rigs.shared import SHARED_SCENARIOS
from tests.stand_ins.openai_scripts import THOUGHT, Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn


class OpenAIBackend(Backend):
    def __init__(self, server: OpenAIStandIn) -> None:
        self.server = server

    def add_text_model(self, pieces: Sequence[str]) -> str:
        deltas = chain.from_iterable(say(piece, len(piece)) for piece in pieces if piece)
        self.server.scripts["made up"] = Script([[*deltas, *end()]])
        return "made up"

    def idle(self) -> bool:
        return all(exchange.done.wait(30) for exchange in self.server.chats)


RIG = Rig(
    provider="openai",
    backend="openai_backend",
    scenarios=(
        *SHARED_SCENARIOS,
        Scenario("thinking in a field", "reasoning", "Hello!", reasoning=THOUGHT),
        Scenario("thinking in another field", "reasoning-field", "Hello!", reasoning=THOUGHT),
        Scenario(
            "arguments that are not JSON",
            "bad-arguments",
            "My arguments were wrong.",
            tools=(("VectorSearch", "VALIDATION_FAILED"),),
        ),
        Scenario("no token counts", "no-usage", "Hello!"),
        Scenario("an error before: a server error", "status-500", end=ERROR),
        Scenario("an error before: too many requests", "status-429", end=ERROR),
        Scenario("an error before: a refused key", "status-401", end=ERROR, retryable=False),
        Scenario("an error before: a forbidden model", "status-403", end=ERROR, retryable=False),
        Scenario("an error before: an unknown model", "nobody", end=ERROR, retryable=False),
        Scenario("an error before: a refused request", "status-400", end=ERROR, retryable=False),
        Scenario("an error before: a redirect", "status-307", end=ERROR, retryable=False),
        Scenario("an error in the middle", "error-middle", HALF, end=ERROR),
        Scenario("a malformed frame", "malformed", HALF, end=ERROR),
        Scenario("a content filter", "filtered", HALF, end=ERROR),
    ),
    cuts=[[f"{how}-{at}" for at in range(0, 1800, 75)] for how in ("cut", "quiet-cut")],
)
