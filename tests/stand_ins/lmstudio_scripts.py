"""The scripts of the LM Studio stand-in: one for each model key.

A script is a list of rounds, one for each prediction of an answer; the last round repeats. A round
is a list of steps, or a function from the request (the `creationParameter` of the prediction) to
one. SCRIPTS has plain names, NUMBERED has names with a number (`cut-4`).
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from apps.core.types import JSON
from tests.stand_ins.openai_scripts import PLAIN, PRINTED_CALL, THOUGHT, Cut, Stall


@dataclass(frozen=True)
class Send:
    """One message on the prediction's channel, after a wait of so many seconds (times the pace)."""

    message: JSON
    wait: float = 0.0


@dataclass(frozen=True)
class Fault:
    """An error that ends the channel. The SDK distinguishes errors by `code`."""

    title: str = "The model has crashed without additional information."
    code: str = ""
    cause: str = ""


@dataclass(frozen=True)
class RawText:
    """This text as one frame, unchanged."""

    text: str


@dataclass(frozen=True)
class Close:
    """The channel is closed, possibly without a success message before."""


Step = Send | Fault | RawText | Close | Stall | Cut
Round = Sequence[Step] | Callable[[JSON], Sequence[Step]]


@dataclass(frozen=True)
class PredictionScript:
    """A script.

    loads: progress values that are reported before the model is loaded.
    cut_after: drop the connection after so many messages.
    context: the model's context length in tokens.
    """

    rounds: Sequence[Round]
    loads: Sequence[float] = ()
    cut_after: int | None = None
    context: int = 32_768


def fragment(text: str, kind: str = "none", wait: float = 0.0) -> Send:
    piece = {"content": text, "tokensCount": 1, "containsDrafted": False, "reasoningType": kind}
    return Send({"type": "fragment", "fragment": piece}, wait)


def say(text: str, size: int = 6, every: float = 0.0, kind: str = "none") -> list[Step]:
    """Return `text` in fragments of `size` characters."""
    return [fragment(text[i : i + size], kind, every) for i in range(0, len(text), size)]


def think(text: str, every: float = 0.0) -> list[Step]:
    """Return reasoning as LM Studio labels it: fragments between those of the two tags."""
    return [
        fragment("<think>", "reasoningStartTag"),
        *say(text, every=every, kind="reasoning"),
        fragment("</think>", "reasoningEndTag"),
    ]


def call(name: str, arguments: JSON, id: str = "365173441") -> list[Step]:
    """Return the messages of a tool call: start, name, argument fragments, the complete call."""
    text = json.dumps(arguments)
    piece = "toolCallGenerationArgumentFragmentGenerated"
    request = {"type": "function", "id": id, "name": name, "arguments": arguments}
    return [
        Send({"type": "toolCallGenerationStart", "toolCallId": id}),
        Send({"type": "toolCallGenerationNameReceived", "name": name}),
        *(Send({"type": piece, "content": text[i : i + 8]}) for i in range(0, len(text), 8)),
        Send({"type": "toolCallGenerationEnd", "toolCallRequest": request}),
    ]


def end(reason: str = "eosFound", prompt: int = 11, predicted: int = 7) -> list[Step]:
    """Return the success message that ends a prediction; the server adds the model."""
    stats = {
        "stopReason": reason,
        "tokensPerSecond": 42.5,
        "promptTokensCount": prompt,
        "predictedTokensCount": predicted,
        "totalTokensCount": prompt + predicted,
    }
    return [Send({"type": "success", "stats": stats}), Close()]


def texts_of(request: JSON, role: str) -> list[str]:
    """Return the texts of a role, tool results included, oldest first."""
    parts = [
        part
        for message in request["history"]["messages"]
        if message["role"] == role
        for part in message["content"]
    ]
    return [part.get("text") or part.get("content", "") for part in parts]


def question(request: JSON) -> str:
    return texts_of(request, "user")[-1]


CITATION = re.compile(r'"citation":\s*"([^"]+)"')


def search(request: JSON) -> list[Step]:
    return [*call("VectorSearch", {"query": question(request)}), *end("toolCalls")]


def answer_from_tools(every: float = 0.0) -> Callable[[JSON], list[Step]]:
    """An answer that names what the tools found, in about 6 s when every=0.05."""

    def answer(request: JSON) -> list[Step]:
        cited = CITATION.findall("\n".join(texts_of(request, "tool")))[:3]
        where = ", ".join(f"`{one}`" for one in cited) or "no place at all"
        filler = " ".join(f"Sentence {n} of a slow answer." for n in range(1, 26))
        return [*say(f"It is in {where}. {filler}", every=every), *end()]

    return answer


def harmony(thought: str, text: str) -> str:
    return (
        f"<|channel|>analysis<|message|>{thought}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{text}"
    )


NOT_FOUND = Fault("Cannot find a model", "generic.noModelMatchingQuery", "No model matches.")

SCRIPTS: dict[str, PredictionScript] = {
    "plain": PredictionScript([[*say(PLAIN), *end()]]),
    "slow": PredictionScript(
        [[*say(" ".join(f"word{n}" for n in range(120)), every=0.05), *end()]]
    ),
    # 6 s and more at pace 1: loading, thinking, one search, an answer that uses it
    "slow-tool": PredictionScript(
        [
            lambda request: [
                Send({"type": "promptProcessingProgress", "progress": 0.0}, 0.2),
                Send({"type": "promptProcessingProgress", "progress": 1.0}, 0.2),
                *think("I should look this up first.", 0.05),
                *say("Let me look. ", every=0.05),
                *search(request),
            ],
            answer_from_tools(every=0.05),
        ],
        loads=(0.25, 0.5, 1.0),
    ),
    "tool": PredictionScript([search, answer_from_tools()]),
    "printed-tool": PredictionScript([[*say(PRINTED_CALL, 3), *end()], answer_from_tools()]),
    "reasoning": PredictionScript([[*think(THOUGHT), *say("Hello!"), *end()]]),
    "think": PredictionScript([[*say(f"<think>{THOUGHT}</think>Hello!", 1), *end()]]),
    "think-open": PredictionScript([[*say(f"<think>{THOUGHT}", 4), *end()]]),
    "harmony": PredictionScript([[*say(harmony(THOUGHT, "Hello!"), 3), *end()]]),
    "two-tools": PredictionScript(
        [
            lambda request: [
                *call("ListIngestedRepositories", {}, "1"),
                *call("VectorSearch", {"query": question(request)}, "2"),
                *end("toolCalls"),
            ],
            answer_from_tools(),
        ]
    ),
    "unknown-tool": PredictionScript(
        [
            [*call("DeleteEverything", {"sure": True}), *end("toolCalls")],
            [*say("There is no such tool."), *end()],
        ]
    ),
    "failed-call": PredictionScript(
        [[*say("Half an ans"), Send({"type": "toolCallGenerationFailed", "error": {}}), *end()]]
    ),
    "endless-tools": PredictionScript([search]),
    "empty": PredictionScript([end()]),
    "loads": PredictionScript([[*say("Hello!"), *end()]], loads=(0.0, 0.5, 1.0)),
    "small": PredictionScript([answer_from_tools()], context=2_048),
    "stall": PredictionScript([[Stall()]]),
    "stall-middle": PredictionScript([[*say("Half an ans"), Stall()]]),
    "malformed": PredictionScript([[*say("Half an ans"), RawText('{"type": "channelSe')]]),
    "stranger": PredictionScript([[*say("Half an ans"), RawText('{"type": "whatever"}')]]),
    "unknown-message": PredictionScript(
        [[*say("Hel"), Send({"type": "newThing"}), *say("lo!"), *end()]]
    ),
    "fault": PredictionScript([[Fault()]]),
    "fault-middle": PredictionScript([[*say("Half an ans"), Fault()]]),
    "error-middle": PredictionScript(
        [[*say("Half an ans"), Send({"type": "error", "error": {"title": "Out of memory"}})]]
    ),
    "cut-middle": PredictionScript([[*say("Half an ans"), Cut()]]),
    "closed-early": PredictionScript([[*say("Half an ans"), Close()]]),
    "length": PredictionScript([[*say("Half an ans"), *end("maxPredictedTokensReached")]]),
    "context-full": PredictionScript([[*say("Half an ans"), *end("contextLengthReached")]]),
    "unloaded": PredictionScript([[*say("Half an ans"), *end("modelUnloaded")]]),
    "failed": PredictionScript([[*say("Half an ans"), *end("failed")]]),
    "stopped": PredictionScript([[*say("Half an ans"), *end("userStopped")]]),
}


def _cut(number: int) -> PredictionScript:
    return PredictionScript(SCRIPTS["plain"].rounds, cut_after=number)


def _tokens(number: int) -> PredictionScript:
    return PredictionScript([[*(fragment(f"{n} ") for n in range(number)), *end()]])


NUMBERED: dict[str, Callable[[int], PredictionScript]] = {
    "cut": _cut,  # cut-4: "plain", dropped after 4 frames
    "tokens": _tokens,  # tokens-10000: so many fragments, "0 1 2 …"
}


def script_for(model: str, more: dict[str, PredictionScript]) -> PredictionScript | None:
    """The script of a model: one of `more`, of SCRIPTS or of NUMBERED."""
    if model in more or model in SCRIPTS:
        return more.get(model) or SCRIPTS[model]
    name, _, number = model.rpartition("-")
    return NUMBERED[name](int(number)) if name in NUMBERED and number.isdigit() else None


def steps_of(script: PredictionScript, request: JSON) -> Iterable[Step]:
    """The steps of the round that this request opens."""
    rounds_done = 0
    for message in request["history"]["messages"]:
        if message["role"] == "user":
            rounds_done = 0
        elif any(part["type"] == "toolCallRequest" for part in message["content"]):
            rounds_done += 1
    chosen = script.rounds[min(rounds_done, len(script.rounds) - 1)]
    return chosen(request) if callable(chosen) else chosen
