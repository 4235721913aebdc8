"""Scenarios of all providers whose tools the loop runs: their scripts have the same names."""

from tests.agents.fakes import NOTHING_INGESTED
from tests.agents.rigs.base import ERROR, HALF, SEARCHED, TIMEOUT, Scenario
from tests.stand_ins.openai_scripts import PLAIN, THOUGHT

SLOW_ANSWER = "It is in `acme/src/net.py:12-14`. " + " ".join(
    f"Sentence {n} of a slow answer." for n in range(1, 26)
)
NO_PLACE = SLOW_ANSWER.replace("`acme/src/net.py:12-14`", "no place at all")

SHARED_SCENARIOS = (
    Scenario("text", "plain", PLAIN),
    Scenario("thinking between tags", "think", "Hello!", reasoning=THOUGHT),
    Scenario("thinking in channels", "harmony", "Hello!", reasoning=THOUGHT),
    Scenario("thinking that never ends", "think-open", reasoning=THOUGHT, end=ERROR),
    Scenario("one tool", "tool", SLOW_ANSWER, tools=SEARCHED),
    Scenario("one tool that is printed as text", "printed-tool", SLOW_ANSWER, tools=SEARCHED),
    Scenario(
        "one tool between thinking and answer",
        "slow-tool",
        f"Let me look. {SLOW_ANSWER}",
        reasoning="I should look this up first.",
        tools=SEARCHED,
    ),
    Scenario(
        "several tools",
        "two-tools",
        SLOW_ANSWER,
        tools=(("ListIngestedRepositories", None), *SEARCHED),
    ),
    Scenario(
        "a tool that fails",
        "tool",
        NO_PLACE,
        tools=(("VectorSearch", "INGEST_REQUIRED"),),
        tools_offered=NOTHING_INGESTED,
    ),
    Scenario(
        "an unknown tool",
        "unknown-tool",
        "There is no such tool.",
        tools=(("DeleteEverything", "UNKNOWN_TOOL"),),
    ),
    Scenario("searching without end", "endless-tools", tools=SEARCHED * 5, end=ERROR),
    Scenario("an empty answer", "empty", end=ERROR),
    Scenario("10,000 tokens", "tokens-10000", "".join(f"{n} " for n in range(10_000))),
    Scenario("a cut connection", "cut-middle", HALF, end=ERROR),
    Scenario("a cut at the output limit", "length", HALF, end=ERROR),
    Scenario("silence from the start", "stall", end=TIMEOUT),
    Scenario("silence in the middle", "stall-middle", HALF, end=TIMEOUT),
)
