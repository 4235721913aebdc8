"""Lists of models from untrusted servers: long, invalid, slow."""

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import AsyncClient

from apps.agents.providers.lmstudio import LMStudioProvider
from apps.agents.providers.openai import OpenAIProvider
from apps.core.errors import Unavailable
from apps.core.http.replies import MAX_REFUSAL
from tests.stand_ins.lmstudio_server import LMStudioStandIn, llm
from tests.stand_ins.raw_server import RawStandIn, http

pytestmark = pytest.mark.door

Configure = Callable[..., None]


def listing(*ids: object) -> bytes:
    return json.dumps({"data": [{"id": id} for id in ids]}).encode()


async def refusal(provider: Any) -> str:
    with pytest.raises(Unavailable) as raised:
        async with asyncio.timeout(60):
            await provider.models()
    return raised.value.message


REFUSED = {
    "too long": (http(b"[" + b" " * 9_000_000), "more than 8000000 bytes"),
    "compressed": (
        http(gzip.compress(listing("m")), 200, "text/plain", "Content-Encoding: gzip"),
        "compressed",
    ),
    "nested": (http(b"[" * 100_000), "like an OpenAI server"),
    "a long number": (
        http(b'{"data": [{"id": "m", "n": ' + b"1" * 5_000 + b"}]}"),
        "like an OpenAI server",
    ),
    "an odd charset": (http(b"x", 500, "text/plain; charset=zlib"), "answered 500"),
    "an odd redirect": (http(b"", 302, "text/plain", "Location: http://[::1"), ""),
}


@pytest.mark.fault("The model server fails")
@pytest.mark.parametrize("reply", REFUSED)
async def test_an_unusable_list_is_reported(reply: str, configure: Configure) -> None:
    head, says = REFUSED[reply]
    with RawStandIn(head) as server:
        configure(openai_base_url=server.url)
        assert says in await refusal(OpenAIProvider())


async def test_the_limit_on_replies_is_named(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawStandIn(http(b"[" + b" " * 5_000)) as server:
        configure(openai_base_url=server.url)
        monkeypatch.setattr("apps.core.http.limits.MAX_REPLY_BYTES", 2_000)
        assert "than 2000 bytes" in await refusal(OpenAIProvider())


async def test_a_list_that_arrives_too_slowly_times_out(configure: Configure) -> None:
    with RawStandIn(http(b"["), b" ", 600, drips=0.1) as server:
        configure(openai_base_url=server.url)
        assert "does not answer in time" in await refusal(OpenAIProvider())


@pytest.mark.fault("The model server fails")
async def test_the_reading_of_a_refusal_ends_at_its_limit(configure: Configure) -> None:
    with RawStandIn(http(b"x" * MAX_REFUSAL, 500), b"", 600, drips=0.1) as server:
        configure(openai_base_url=server.url)
        assert "answered 500" in await refusal(OpenAIProvider())


async def test_models_with_invalid_names_are_skipped(configure: Configure) -> None:
    ids = ["good", "x" * 300, "half \ud800", "nul \0", 7, None, *(f"m{n}" for n in range(5_000))]
    with RawStandIn(http(listing(*ids))) as server:
        configure(openai_base_url=server.url)
        keys = [model.key for model in await OpenAIProvider().models()]
    assert keys[:2] == ["good", "m0"]
    assert len(keys) == 1_000


@pytest.mark.parametrize(
    "id", ["half \ud800", "nul \0", "x" * 100_000], ids=["half a character", "NUL", "long"]
)
async def test_the_page_and_the_api_accept_a_list_with_unusual_names(
    id: str, configure: Configure, async_client: AsyncClient, transactional_db: None
) -> None:
    with RawStandIn(http(listing(id, "good"))) as server:
        configure(openai_base_url=server.url, chat_provider="openai")
        page = await async_client.get("/ui/chat/picker?provider=openai")
        models = await async_client.get("/chat/models?provider=openai")
    assert (page.status_code, models.status_code) == (200, 200)
    assert [model["key"] for model in models.json()["models"]] == ["good"]
    assert len(page.content) < 50_000


async def test_the_number_of_lm_studio_models_is_limited(lmstudio: LMStudioStandIn) -> None:
    odd = llm("shown") | {"displayName": "y" * 100_000, "sizeBytes": 10**4_000}
    keys = ["x" * 300, "half \ud800", *(f"m{n}" for n in range(1_500))]
    lmstudio.models = [odd, *map(llm, keys)]
    models = await LMStudioProvider().models()
    assert [model.key for model in models[:2]] == ["shown", "m0"]
    assert len(models) == 1_000
    assert len(models[0].display_name) <= 200


async def test_a_too_long_list_of_lm_studio_is_reported(lmstudio: LMStudioStandIn) -> None:
    lmstudio.listing = json.dumps({"pad": "x" * 9_000_000})
    assert "8000000 bytes" in await refusal(LMStudioProvider())


async def test_the_status_page_accepts_malformed_model_entries(
    lmstudio: LMStudioStandIn, async_client: AsyncClient
) -> None:
    odd = llm("shown") | {"displayName": "y" * 100_000, "sizeBytes": 10**4_000}
    lmstudio.models = [odd, *(llm(f"m{n}") for n in range(1_500))]
    status = await async_client.get("/lmstudio/status")
    assert status.status_code == 200
    assert len(status.json()["models"]) == 1_000
    assert len(status.content) < 1_000_000


@pytest.mark.parametrize(
    "reply",
    [http(b"x" * 10_000_000), http(b"[" * 100_000), http(b"1" * 5_000)],
    ids=["long", "nested", "a long number"],
)
async def test_an_invalid_greeting_is_not_lm_studio(
    reply: bytes, configure: Configure, transactional_db: None
) -> None:
    with RawStandIn(reply) as server:
        configure(lmstudio_base_url=server.url)
        assert "Something else than LM Studio" in await refusal(LMStudioProvider())
