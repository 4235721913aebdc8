"""What every provider plays whose tools are ours to run: the scripts have the same names."""

from tests.agents.cast import NOTHING_INGESTED
from tests.agents.rigs.base import ERROR, HALF, SEARCHED, TIMEOUT, Play
from tests.stand_ins.openai_scripts import PLAIN, THOUGHT

SLOW_ANSWER = "It is in `acme/src/net.py:12-14`. " + " ".join(
    f"Sentence {n} of a slow answer." for n in range(1, 26)
)
NO_PLACE = SLOW_ANSWER.replace("`acme/src/net.py:12-14`", "no place at all")

PLAYS = (
    Play("text", "plain", PLAIN),
    Play("thinking between tags", "think", "Hello!", reasoning=THOUGHT),
    Play("thinking in channels", "harmony", "Hello!", reasoning=THOUGHT),
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
    Play("searching without end", "endless-tools", tools=SEARCHED * 5, end=ERROR),
    Play("an empty answer", "empty", end=ERROR),
    Play("10,000 tokens", "tokens-10000", "".join(f"{n} " for n in range(10_000))),
    Play("a cut connection", "cut-middle", HALF, end=ERROR),
    Play("a cut at the output limit", "length", HALF, end=ERROR),
    Play("silence from the start", "stall", end=TIMEOUT),
    Play("silence in the middle", "stall-middle", HALF, end=TIMEOUT),
)
