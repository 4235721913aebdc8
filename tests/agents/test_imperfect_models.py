"""Local models that are not perfect, as a client sees them: POST /chat and its events."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import AsyncClient

from apps.agents.providers import openai_requests
from apps.conversations import runner
from apps.conversations.models import Turn
from apps.conversations.parts import content, reasoning
from apps.core.types import JSON
from tests.agents.fakes import LINES, TOOLS, found, match, tool
from tests.conversations.frames import SSE, events_of, streamed
from tests.stand_ins.openai_scripts import (
    Delta,
    Raw,
    Round,
    Script,
    Status,
    Step,
    answer_from_tools,
    call,
    end,
    say,
)
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.chat import answers
from tests.support.chat import ask as ask
from tests.support.chat import nothing_left_running as nothing_left_running

pytestmark = [pytest.mark.usefixtures("nothing_left_running"), pytest.mark.door]

Ask = Callable[..., Any]
SEARCH = '{"name": "VectorSearch", "arguments": {"query": "retry"}}'
FOUND = "It is in `acme/src/net.py:12-14`."
SEARCHED = [("VectorSearch", "success")]
CONTEXT = tool("Context", found(match()))


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "toolset", lambda *limits: (*TOOLS, CONTEXT))


@pytest.fixture
def long_results(offered: None, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tool("VectorSearch", {"results": ["x" * 20_000]})
    monkeypatch.setattr(runner, "toolset", lambda *limits: (long,))


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_requests, "refused", {})


@dataclass
class Seen:
    """What a client has: the text that its tokens make, a snapshot replacing them, and the end."""

    text: str
    reasoning: str
    tools: list[tuple[str, str]]
    final: str
    error: str
    tokens: str

    @classmethod
    def of(cls, raw: str) -> "Seen":
        seen = cls("", "", [], "", "", "")
        for _, message in events_of(raw):
            match message["type"]:
                case "token":
                    seen.text += message["content"]
                    seen.tokens += message["content"]
                case "analysis":
                    seen.reasoning += message["content"]
                case "snapshot":
                    seen.text = message["inflight"]["assistantText"]
                    seen.reasoning = message["inflight"]["assistantThink"]
                case "tool-result":
                    seen.tools.append((message["name"], message["stage"]))
                case "final":
                    seen.final = message["message"]["content"]
                case "error":
                    seen.error = message["message"]
        return seen


@pytest.fixture
async def answer(server: OpenAIStandIn, ask: Ask) -> AsyncIterator[Callable[..., Any]]:
    """answer(round, …) plays these rounds and returns what the client has Seen."""

    async def play(*rounds: Round, model: str = "imperfect") -> Seen:
        server.scripts[model] = Script(rounds)
        return Seen.of(await streamed(await ask(accept=SSE, model=model)))

    yield play


def printed(text: str) -> list[Round]:
    return [[*say(text, 3), *end()], answer_from_tools()]


PRINTED = {
    "tags": f"<tool_call>\n{SEARCH}\n</tool_call>",
    "reasoning and tags": f"<think>I search.</think>\n\n<tool_call>{SEARCH}</tool_call><|im_end|>",
    "reasoning without a start and tags": f"I search.</think>\n<tool_call>{SEARCH}</tool_call>",
    "a function": "<function=VectorSearch>\n<parameter=query>\nretry\n</parameter>\n</function>",
    "a list": f"[TOOL_CALLS][{SEARCH}]</s>",
    "a block": f"```json\n{SEARCH}\n```",
    "Python": f"<|python_tag|>{SEARCH}<|eom_id|>",
    "bare": '{"name": "VectorSearch", "parameters": {"query": "retry"}}<|eot_id|>',
    "a call of Python": '<|im_start|>assistant\n[VectorSearch(query="retry")]<|im_end|>',
    "Gemma's texts": "<|channel>thought\nI search.<channel|><|tool_call>call:VectorSearch"
    '{query:<|"|>retry<|"|>}<tool_call|>',
    "an action": 'Action: VectorSearch\nAction Input: {"query": "retry"}\nObservation: none',
    "reasoning that ends with tags": f"<think>I search.\n<tool_call>{SEARCH}</tool_call></think>",
    "a channel": "<|channel|>analysis<|message|>I search.<|end|><|start|>assistant"
    '<|channel|>commentary to=functions.VectorSearch <|constrain|>json<|message|>{"query":"x"}'
    "<|call|>",
}


@pytest.mark.parametrize("text", PRINTED.values(), ids=PRINTED)
async def test_a_printed_call_is_run(answer: Callable[..., Any], text: str) -> None:
    seen = await answer(*printed(text))
    assert seen.tools == SEARCHED
    assert seen.final.startswith(FOUND)
    assert seen.text == seen.final
    assert "VectorSearch" not in seen.tokens
    assert "<" not in seen.tokens
    (turn,) = await answers()
    assert [part["type"] for part in turn.parts][-2:] == ["tool", "text"]


async def test_a_printed_call_of_another_tool_ends_with_a_sentence(
    answer: Callable[..., Any],
) -> None:
    text = '<tool_call>{"name": "DropTable", "arguments": {}}</tool_call>'
    seen = await answer(*printed(text))
    assert (seen.tokens, seen.tools, seen.final) == ("", [], "")
    assert seen.error == (
        "The model wrote a call of 'DropTable' as text; it may not be called here."
    )


REASONED = {
    "no start": [*say("Let me think.\n</think>\n\nHello!", 4)],
    "thinking": [*say("<thinking>Let me think.</thinking>Hello!", 4)],
    "seed": [*say("<seed:think>Let me think.</seed:think>Hello!", 4)],
    "brackets": [*say("[THINK]Let me think.[/THINK]Hello!", 4)],
    "Gemma": [*say("<|channel>thought\nLet me think.<channel|>Hello!", 4)],
    "details": [
        Delta({"reasoning_details": [{"type": "reasoning.text", "text": "Let me think."}]}),
        *say("Hello!"),
    ],
    "details beside a field": [
        Delta(
            {"reasoning": "Let me think."}
            | {"reasoning_details": [{"type": "reasoning.text", "text": "Let me think."}]}
        ),
        *say("Hello!"),
    ],
    "summary": [
        Delta({"reasoning_details": [{"type": "reasoning.summary", "summary": "Let me think."}]}),
        *say("Hello!<|im_end|>", 4),
    ],
}


@pytest.mark.parametrize("steps", REASONED.values(), ids=REASONED)
async def test_reasoning_is_apart_from_the_answer(
    answer: Callable[..., Any], steps: Sequence[Step]
) -> None:
    seen = await answer([*steps, *end()])
    assert (seen.text, seen.final) == ("Hello!", "Hello!")
    assert seen.reasoning.strip() == "Let me think."
    (turn,) = await answers()
    assert (content(turn.parts), reasoning(turn.parts).strip()) == ("Hello!", "Let me think.")


async def test_an_answer_about_markers_is_shown_whole(answer: Callable[..., Any]) -> None:
    text = "`<think>` starts it:\n\n```python\nEND = </think>\n```\n\n`</think>` and `</s>` end it."
    seen = await answer([*say(text, 1), *end()])
    assert (seen.final, seen.reasoning) == (text, "")


@pytest.mark.parametrize("token", ["<|im_end|>", "<|eot_id|>", "</s>", "<end_of_turn>"])
async def test_an_end_token_is_not_shown(answer: Callable[..., Any], token: str) -> None:
    seen = await answer([*say(f"Hello!{token}", 3), *end()])
    assert (seen.text, seen.final) == ("Hello!", "Hello!")


@pytest.mark.parametrize(
    "error",
    [
        b'{"error": "out of memory"}',
        b'{"error": {"message": "out of memory"}}',
        b'{"object": "error", "message": "out of memory", "code": 500}',
    ],
)
async def test_an_error_in_the_stream_keeps_its_text(
    answer: Callable[..., Any], error: bytes
) -> None:
    seen = await answer([*say("Half"), Raw(b"data: " + error + b"\n\n")])
    assert seen.text == "Half"
    assert seen.error == "The server failed: out of memory"


async def test_two_calls_without_ids_under_one_index_are_two(answer: Callable[..., Any]) -> None:
    def piece(name: str, arguments: Any) -> Delta:
        function = {"name": name, "arguments": arguments}
        return Delta({"tool_calls": [{"index": 0, "function": function}]})

    seen = await answer(
        [
            piece("VectorSearch", '{"query": "a"}'),
            piece("VectorSearch", {"query": "b"}),
            piece("ListIngestedRepositories", "{}"),
            *end("tool_calls"),
        ],
        answer_from_tools(),
    )
    assert seen.tools == [*SEARCHED, *SEARCHED, ("ListIngestedRepositories", "success")]


REFUSALS = [
    (400, "registry.ollama.ai/library/gemma2:2b does not support tools"),
    (500, "tools param requires --jinja flag"),
    (500, "Unsupported param: tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (404, "No endpoints found that support tool use."),
    (400, "`tool calling` is not supported with this model"),
    (400, "Function calling is not enabled for models/gemma-3-27b-it"),
    (400, "Unrecognized request argument supplied: tools"),
    (400, 'json: unknown field "tools"'),
    (422, "Extra inputs are not permitted: tools"),
    (400, "No tool parser is configured for this model"),
    (400, "functions are not supported by this model"),
]


def without_tools(status: int, message: str) -> Round:
    """Refuse tools; answer without them, from passages in the last message."""

    def reply(request: JSON) -> list[Step]:
        if "tools" in request or any(m["role"] == "tool" for m in request["messages"]):
            return [Status(status, message)]
        last = request["messages"][-1]
        text = FOUND if last["role"] == "user" and LINES[0] in last["content"] else "Not found."
        return [*say(text), *end()]

    return reply


@pytest.mark.parametrize(("status", "message"), REFUSALS)
async def test_a_model_without_tools_answers_from_passages(
    server: OpenAIStandIn, answer: Callable[..., Any], status: int, message: str
) -> None:
    seen = await answer(without_tools(status, message))
    assert (seen.tools, seen.final, seen.error) == ([("Context", "success")], FOUND, "")
    assert len(server.chats) == 2
    await answer(without_tools(status, message))
    assert len(server.chats) == 3, "the refusal is remembered"
    roles = [message["role"] for message in server.chats[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid schema for function 'Grep': 'oneOf' is not permitted"),
        (400, "temperature is not supported"),
        (401, "does not support tools"),
    ],
)
async def test_other_refusals_end_the_answer(
    server: OpenAIStandIn, answer: Callable[..., Any], status: int, message: str
) -> None:
    seen = await answer([Status(status, message)])
    assert seen.error
    assert len(server.chats) == 1


TOO_LONG = [
    (400, "This model's maximum context length is 2000 tokens. However, you requested 9000"),
    (400, "the request exceeds the available context size. try increasing the context size"),
    (
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length",
    ),
    (400, "Trying to keep the first 9000 tokens when context the overflows."),
    (
        400,
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum",
    ),
    (400, "prompt is too long: 209999 tokens > 200000 maximum"),
    (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 9000"),
    (413, "Request too large for model"),
    (400, "You passed 4097 input tokens. However, the model's context length is only 4096 tokens"),
    (500, "Reached context length of 4096 tokens, no mid-generation context overflow"),
    (400, "Cannot truncate prompt with n_keep (9000) >= n_ctx (4096)"),
    (500, "input is too large to process. increase the physical batch size"),
    (400, "The input token count (9000) exceeds the maximum number of tokens allowed (4096)."),
    (400, "Prompt has 9000 tokens, but model max is 4096"),
    (400, "too many tokens: size limit exceeded by 12 tokens"),
    (400, "InputTokenLimitExceeded"),
]


def with_context(chars: int, status: int, message: str) -> Round:
    def reply(request: JSON) -> list[Step]:
        sent = request["messages"]
        if sum(len(m["content"] or "") for m in sent) > chars:
            return [Status(status, message)]
        if sent[-1]["role"] == "user":
            return [*call("VectorSearch", {"query": "retry"}), *end("tool_calls")]
        return [*say("It retries."), *end()]

    return reply


@pytest.mark.usefixtures("long_results")
@pytest.mark.parametrize(("status", "message"), TOO_LONG)
async def test_a_context_that_is_too_small_is_cut_for_and_said(
    server: OpenAIStandIn, answer: Callable[..., Any], status: int, message: str
) -> None:
    seen = await answer(with_context(10_000, status, message))
    assert seen.final.startswith("It retries.")
    assert "context of the model was too small" in seen.final
    assert "left out for want of room" in server.chats[-1].body["messages"][-1]["content"]
    assert len(server.chats) < 6
    assert (await answers())[0].status == Turn.Status.OK


@pytest.mark.usefixtures("long_results")
async def test_a_context_that_is_said_to_be_too_small_in_the_stream_is_cut_for(
    answer: Callable[..., Any],
) -> None:
    inner = with_context(10_000, 400, "")

    def reply(request: JSON) -> Sequence[Step]:
        assert callable(inner)
        steps = inner(request)
        error = b'data: {"error": {"message": "exceeds the available context size"}}\n\n'
        return [Raw(error)] if isinstance(steps[0], Status) else steps

    assert (await answer(reply)).final.startswith("It retries.")


async def test_a_question_beyond_any_cut_ends_with_the_servers_words(
    server: OpenAIStandIn, answer: Callable[..., Any]
) -> None:
    seen = await answer([Status(400, "This model's maximum context length is 20 tokens.")])
    assert "maximum context length is 20 tokens" in seen.error
    assert len(server.chats) < 12


@pytest.mark.usefixtures("long_results")
async def test_the_notice_of_a_cut_is_no_answer(
    answer: Callable[..., Any],
) -> None:
    inner = with_context(10_000, 400, "prompt is too long")

    def reply(request: JSON) -> Sequence[Step]:
        assert callable(inner)
        steps = inner(request)
        return end() if isinstance(steps[0], Delta) and "content" in steps[0].body else steps

    seen = await answer(reply)
    assert (seen.text, seen.error) == ("", "The model ended without an answer.")


async def test_the_page_shows_reasoning_that_had_only_an_end(
    answer: Callable[..., Any], async_client: AsyncClient
) -> None:
    await answer([*say("Let me think.</think>Hello!", 4), *end()])
    page = (await async_client.get("/chat?c=c1")).content.decode()
    text = page[page.index("<article") :]
    assert "</think>" not in text
    assert text.index("Let me think.") < text.index("Hello!")
