"""The scripts of the OpenAI-compatible stand-in: one for each model name.

A script is a list of rounds, one for each request of an answer; the last round repeats. A round is
a list of steps, or a function from the request's body to one. SCRIPTS has plain names, NUMBERED has
names with a number (`cut-40`, `status-429`).
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from apps.core.types import JSON


@dataclass(frozen=True)
class Delta:
    """One frame with this `delta`, after a wait of so many seconds (times the server's pace)."""

    body: JSON
    wait: float = 0.0


@dataclass(frozen=True)
class Finish:
    reason: str = "stop"


@dataclass(frozen=True)
class Usage:
    """The usage frame, sent only if the request has `stream_options`."""

    prompt: int = 11
    completion: int = 7


@dataclass(frozen=True)
class Raw:
    """These bytes, unchanged, in the stream."""

    data: bytes


@dataclass(frozen=True)
class Status:
    """This HTTP response instead of a stream. Only as the first step."""

    code: int
    message: str = "scripted failure"
    headers: tuple[tuple[str, str], ...] = ()
    error: str = ""  # the error's own code; the status when blank


@dataclass(frozen=True)
class ErrorFrame:
    """An error in the middle of the stream, as OpenAI sends it."""

    message: str = "the engine fell over"


@dataclass(frozen=True)
class Stall:
    """No more frames until the client disconnects."""


@dataclass(frozen=True)
class Cut:
    """The connection is dropped in the middle of the body."""


Step = Delta | Finish | Usage | Raw | Status | ErrorFrame | Stall | Cut
Round = Sequence[Step] | Callable[[JSON], Sequence[Step]]


@dataclass(frozen=True)
class Script:
    """A script.

    cut_after: drop the connection after so many bytes of the body.
    quiet: send the body without chunked encoding, so that a cut looks like its end.
    refuses: request fields that are answered with 400.
    """

    rounds: Sequence[Round]
    cut_after: int | None = None
    quiet: bool = False
    refuses: Sequence[str] = field(default=())


def say(text: str, size: int = 6, every: float = 0.0, key: str = "content") -> list[Step]:
    """Return `text` in deltas of `size` characters."""
    return [Delta({key: text[i : i + size]}, every) for i in range(0, len(text), size)]


def call(name: str, arguments: JSON | str, id: str = "call_1", index: int = 0) -> list[Step]:
    """Return a tool call as OpenAI streams it: id and name, then the arguments in fragments."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    head = {"index": index, "id": id, "type": "function"}
    pieces = [text[i : i + 5] for i in range(0, len(text), 5)]
    return [
        Delta({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]}),
        *(Delta({"tool_calls": [{"index": index, "function": {"arguments": p}}]}) for p in pieces),
    ]


def end(reason: str = "stop") -> list[Step]:
    return [Finish(reason), Usage()]


def question(request: JSON) -> str:
    """Return the last user message."""
    texts = [m["content"] for m in request["messages"] if m["role"] == "user"]
    return str(texts[-1]) if texts else ""


def tool_texts(request: JSON) -> list[str]:
    """Return the tool results after the last user message."""
    texts: list[str] = []
    for message in request["messages"]:
        if message["role"] == "user":
            texts = []
        elif message["role"] == "tool":
            texts.append(message["content"])
    return texts


CITATION = re.compile(r'"citation":\s*"([^"]+)"')


def cited(request: JSON) -> list[str]:
    """Return the citations, `repo/path:1-2`, in the tool results."""
    return CITATION.findall("\n".join(tool_texts(request)))


def search(request: JSON) -> list[Step]:
    return [*call("VectorSearch", {"query": question(request)}), *end("tool_calls")]


def answer_from_tools(every: float = 0.0) -> Callable[[JSON], list[Step]]:
    """Return an answer with the results of the tool; it takes about 6 s with every=0.05."""

    def answer(request: JSON) -> list[Step]:
        where = ", ".join(f"`{ref}`" for ref in cited(request)[:3]) or "no place at all"
        filler = " ".join(f"Sentence {n} of a slow answer." for n in range(1, 26))
        return [*say(f"It is in {where}. {filler}", every=every), *end()]

    return answer


PLAIN = "Hello, this is a plain answer.\n\n- one\n- two\n"
PRINTED_CALL = '<tool_call>{"name": "VectorSearch", "arguments": {"query": "x"}}</tool_call>'
THOUGHT = "The user greets me; I greet back."

SCRIPTS: dict[str, Script] = {
    "plain": Script([[*say(PLAIN), *end()]]),
    "slow": Script([[*say(" ".join(f"word{n}" for n in range(120)), every=0.05), *end()]]),
    # 5 s and more at pace 1: thinking in split markers, one search, an answer that uses it
    "slow-tool": Script(
        [
            lambda request: [
                *say("<think>I should look this up first.</think>Let me look. ", 3, 0.05),
                *search(request),
            ],
            answer_from_tools(every=0.05),
        ]
    ),
    "tool": Script([search, answer_from_tools()]),
    "printed-tool": Script([[*say(PRINTED_CALL, 3), *end()], answer_from_tools()]),
    "think": Script([[*say(f"<think>{THOUGHT}</think>Hello!", 1), *end()]]),
    "think-open": Script([[*say(f"<think>{THOUGHT}", 4), *end()]]),
    "harmony": Script(
        [
            [
                *say(
                    f"<|channel|>analysis<|message|>{THOUGHT}<|end|>"
                    "<|start|>assistant<|channel|>final<|message|>Hello!",
                    3,
                ),
                *end(),
            ]
        ]
    ),
    "reasoning": Script([[*say(THOUGHT, key="reasoning_content"), *say("Hello!"), *end()]]),
    "reasoning-field": Script([[*say(THOUGHT, key="reasoning"), *say("Hello!"), *end()]]),
    "two-tools": Script(
        [
            lambda request: [
                *call("ListIngestedRepositories", {}, "call_a", 0),
                *call("VectorSearch", {"query": question(request)}, "call_b", 1),
                *end("tool_calls"),
            ],
            answer_from_tools(),
        ]
    ),
    "unknown-tool": Script(
        [
            [*call("DeleteEverything", {"sure": True}), *end("tool_calls")],
            [*say("There is no such tool."), *end()],
        ]
    ),
    "bad-arguments": Script(
        [
            [*call("VectorSearch", '{"query": "half'), *end("tool_calls")],
            [*say("My arguments were wrong."), *end()],
        ]
    ),
    "endless-tools": Script([search]),
    "empty": Script([end()]),
    "stall": Script([[Stall()]]),
    "stall-middle": Script([[*say("Half an ans"), Stall()]]),
    "malformed": Script([[*say("Half an ans"), Raw(b'data: {"choices": [{"delta":\n\n')]]),
    "error-middle": Script([[*say("Half an ans"), ErrorFrame()]]),
    "cut-middle": Script([[*say("Half an ans"), Cut()]]),
    "length": Script([[*say("Half an ans"), *end("length")]]),
    "filtered": Script([[*say("Half an ans"), *end("content_filter")]]),
    "no-usage": Script([[*say("Hello!"), *end()]], refuses=["stream_options"]),
}


def _failing(number: int) -> Script:
    return Script([[Status(number)]])


def _cut(number: int) -> Script:
    return Script(SCRIPTS["plain"].rounds, cut_after=number)


def _quiet_cut(number: int) -> Script:
    return Script(SCRIPTS["plain"].rounds, cut_after=number, quiet=True)


def _tokens(number: int) -> Script:
    return Script([[*(Delta({"content": f"{n} "}) for n in range(number)), *end()]])


NUMBERED: dict[str, Callable[[int], Script]] = {
    "status": _failing,  # status-429: this status at once
    "cut": _cut,  # cut-40: "plain", dropped after 40 bytes of its body
    "quiet-cut": _quiet_cut,  # the same on a body without framing
    "tokens": _tokens,  # tokens-10000: so many frames, "0 1 2 …"
}


def script_for(model: str, more: dict[str, Script]) -> Script | None:
    """The script of a model: one of `more`, of SCRIPTS or of NUMBERED."""
    if model in more or model in SCRIPTS:
        return more.get(model) or SCRIPTS[model]
    name, _, number = model.rpartition("-")
    return NUMBERED[name](int(number)) if name in NUMBERED and number.isdigit() else None


def steps_of(script: Script, request: JSON) -> Iterable[Step]:
    """The steps of the round that this request opens."""
    rounds_done = 0
    for message in request["messages"]:
        if message["role"] == "user":
            rounds_done = 0
        elif message["role"] == "assistant" and message.get("tool_calls"):
            rounds_done += 1
    chosen = script.rounds[min(rounds_done, len(script.rounds) - 1)]
    return chosen(request) if callable(chosen) else chosen
