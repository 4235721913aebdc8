"""The scripts of the Responses API stand-in: one for each model name.

They use the steps of `openai_scripts` and events of the Responses API. The number of answered calls
in the request selects the round.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from apps.core.types import JSON
from tests.stand_ins.openai_scripts import (
    PLAIN,
    THOUGHT,
    Cut,
    Delta,
    Raw,
    Round,
    Script,
    Stall,
    Status,
    Step,
)

NAMESPACE = "mcp__codeinfo"
HALF = "Half an ans"

_numbers = count(1)


@dataclass(frozen=True)
class Event(Delta):
    """One event of this type; `body` holds its other members."""

    type: str = ""


def event(type: str, wait: float = 0.0, **body: Any) -> Event:
    return Event(body, wait, type)


def pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def say(text: str, size: int = 6, every: float = 0.0, phase: str | None = None) -> list[Step]:
    """Return a message in deltas of `size` characters."""
    id = f"msg_{next(_numbers)}"
    item: JSON = {"type": "message", "role": "assistant", "id": id, "content": []}
    item |= {"phase": phase} if phase else {}
    place: JSON = {"item_id": id, "output_index": 0, "content_index": 0}
    deltas = [
        event("response.output_text.delta", every, delta=p, **place) for p in pieces(text, size)
    ]
    whole = {**item, "content": [{"type": "output_text", "text": text}]}
    return [_added(item), *deltas, _done(whole)]


def think(*texts: str, every: float = 0.0) -> list[Step]:
    """Return a reasoning summary with one part for each text."""
    id = f"rs_{next(_numbers)}"
    steps: list[Step] = [_added({"type": "reasoning", "id": id, "summary": []})]
    for index, text in enumerate(texts):
        place: JSON = {"item_id": id, "output_index": 0, "summary_index": index}
        steps.append(event("response.reasoning_summary_part.added", **place))
        for piece in pieces(text, 6):
            steps.append(
                event("response.reasoning_summary_text.delta", every, delta=piece, **place)
            )
    summary = [{"type": "summary_text", "text": text} for text in texts]
    return [*steps, _done({"type": "reasoning", "id": id, "summary": summary})]


def call(name: str, arguments: JSON | str, id: str = "") -> list[Step]:
    """Return a call of a tool of our MCP server, which Codex finds by its namespace."""
    number = next(_numbers)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    item = {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": id or f"call_{number}",
        "namespace": NAMESPACE,
        "name": name,
        "arguments": text,
    }
    return [_added({**item, "arguments": ""}), _done(item)]


def script(code: str) -> list[Step]:
    """Return a call of `exec`, which runs JavaScript: the only tool that newer models are given."""
    return freeform("exec", code)


def freeform(name: str, text: str) -> list[Step]:
    """Return a call of a tool of Codex itself, with a text as its argument."""
    number = next(_numbers)
    item = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}"}
    item |= {"name": name, "input": text}
    return [_added({**item, "input": ""}), _done(item)]


def own(name: str, arguments: JSON, namespace: str = "") -> list[Step]:
    """Return a call of a tool of Codex itself."""
    item: JSON = {**call(name, arguments)[1].body["item"]}
    del item["namespace"]
    item |= {"namespace": namespace} if namespace else {}
    return [_added({**item, "arguments": ""}), _done(item)]


def end(input: int = 11, output: int = 7, cached: int = 3, thought: int = 0) -> list[Step]:
    usage = {
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": input + output,
    }
    return [event("response.completed", response={"id": "resp_1", "usage": usage})]


def fail(code: str, message: str) -> list[Step]:
    error = {"code": code, "message": message}
    return [event("response.failed", response={"id": "resp_1", "error": error})]


def _added(item: JSON) -> Event:
    return event("response.output_item.added", output_index=0, item=item)


def _done(item: JSON) -> Event:
    return event("response.output_item.done", output_index=0, item=item)


def since_question(request: JSON) -> list[JSON]:
    """Return the items after the last user message."""
    items: list[JSON] = request["input"]
    user_positions = [n for n, item in enumerate(items) if item.get("role") == "user"]
    return items[user_positions[-1] + 1 :] if user_positions else items


def question(request: JSON) -> str:
    """Return the last user message."""
    texts = [item["content"] for item in request["input"] if item.get("role") == "user"]
    return "".join(part.get("text", "") for part in texts[-1]) if texts else ""


def tool_texts(request: JSON) -> list[str]:
    """Return the tool results after the last user message."""
    outputs = [i["output"] for i in since_question(request) if i["type"] == "function_call_output"]
    return [
        o if isinstance(o, str) else "\n".join(part.get("text", "") for part in o) for o in outputs
    ]


PLACE = re.compile(
    r'"repo":\s*"([^"]+)",\s*"relPath":\s*"([^"]+)".*?'
    r'(?:"lines":\s*"([\d-]+)"|"startLine":\s*(\d+),\s*"endLine":\s*(\d+))',
    re.DOTALL,
)


def cited(request: JSON) -> list[str]:
    """Return the citations, `repo/path:1-2`, in the tool results."""
    found = PLACE.findall("\n".join(tool_texts(request)))
    return [f"{repo}/{path}:{lines or f'{start}-{end}'}" for repo, path, lines, start, end in found]


def search(request: JSON) -> list[Step]:
    return [*call("VectorSearch", {"query": question(request)}), *end()]


def answer_from_tools(every: float = 0.0) -> Callable[[JSON], list[Step]]:
    """An answer that shows what the tool found."""

    def answer(request: JSON) -> list[Step]:
        where = ", ".join(f"`{ref}`" for ref in cited(request)[:3]) or "no place at all"
        return [*say(f"It is in {where}.", every=every, phase="final_answer"), *end()]

    return answer


def _both(request: JSON) -> list[Step]:
    return [
        *call("ListIngestedRepositories", {}),
        *call("VectorSearch", {"query": question(request)}),
        *end(),
    ]


def outputs(request: JSON) -> list[str]:
    """Return what all calls after the last user message answered, as JSON."""
    answered = (item for item in since_question(request) if item["type"].endswith("_output"))
    return [json.dumps(item["output"]) for item in answered]


def obey(request: JSON) -> list[Step]:
    """Do what the question says: a JSON list of `[function, *arguments]`, one for each request."""
    orders, done = json.loads(question(request)), len(outputs(request))
    if done == len(orders):
        return [*say("Done."), *end()]
    name, *arguments = orders[done]
    return [*ORDERS[name](*arguments), *end()]


ORDERS: dict[str, Callable[..., list[Step]]] = {
    "script": script,
    "freeform": freeform,
    "own": own,
    "call": call,
}
OBEDIENT = Script([obey])

SCRIPTS: dict[str, Script] = {
    "plain": Script([[*say(PLAIN), *end()]]),
    "slow": Script([[*say(" ".join(f"word{n}" for n in range(120)), every=0.05), *end()]]),
    "think": Script([[*think(THOUGHT, "So be it."), *say("Hello!"), *end(thought=5)]]),
    "tool": Script([search, answer_from_tools()]),
    # Some seconds at pace 1: thinking, a word about what it does, a search, the answer.
    "slow-tool": Script(
        [
            lambda request: [
                *think("I should look this up first.", every=0.05),
                *say("Let me look. ", every=0.05, phase="commentary"),
                *search(request),
            ],
            answer_from_tools(every=0.05),
        ]
    ),
    "two-tools": Script([_both, answer_from_tools()]),
    "unknown-tool": Script(
        [[*call("DeleteEverything", {"sure": True}), *end()], [*say("No such tool."), *end()]]
    ),
    "two-messages": Script([[*say("First."), *say("Second."), *end()]]),
    "commentary": Script(
        [[*say("Let me see.", phase="commentary"), *say("Hello!", phase="final_answer"), *end()]]
    ),
    "empty": Script([end()]),
    "stall": Script([[Stall()]]),
    "stall-middle": Script([[*say(HALF)[:-1], Stall()]]),
    "malformed": Script([[*say(HALF)[:-1], Raw(b'data: {"type": \n\n'), Cut()]]),
    "cut-middle": Script([[*say(HALF)[:-1], Cut()]]),
    "failed": Script([fail("server_error", "the engine fell over")]),
    "failed-middle": Script([[*say(HALF)[:-1], *fail("server_error", "the engine fell over")]]),
    "too-long": Script([fail("context_length_exceeded", "Your input exceeds the window.")]),
    "no-quota": Script([fail("insufficient_quota", "You exceeded your current quota.")]),
}


def _failing(number: int) -> Script:
    return Script([[Status(number)]])


def _tokens(number: int) -> Script:
    return Script([[*say("".join(f"{n} " for n in range(number)), 5), *end()]])


NUMBERED: dict[str, Callable[[int], Script]] = {"status": _failing, "tokens": _tokens}


def script_for(model: str, more: dict[str, Script]) -> Script | None:
    """The script of a model: one of `more`, of SCRIPTS or of NUMBERED."""
    if model in more or model in SCRIPTS:
        return more.get(model) or SCRIPTS[model]
    if model.startswith("gpt-"):
        # Codex' own models, for trying out the pages.
        return SCRIPTS["slow-tool"]
    name, _, number = model.rpartition("-")
    return NUMBERED[name](int(number)) if name in NUMBERED and number.isdigit() else None


def steps_of(script: Script, request: JSON) -> Iterable[Step]:
    """The steps of the round that this request opens."""
    answered = len(tool_texts(request))
    for chosen in script.rounds:
        steps = _steps(chosen, request)
        calls = sum(isinstance(s, Event) and _is_call(s) for s in steps)
        if answered < calls or not calls:
            return steps
        answered -= calls
    return _steps(script.rounds[-1], request)


def _steps(chosen: Round, request: JSON) -> Sequence[Step]:
    return chosen(request) if callable(chosen) else chosen


def _is_call(step: Event) -> bool:
    done = step.type == "response.output_item.done"
    return done and step.body["item"]["type"] == "function_call"
