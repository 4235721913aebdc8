"""The registry of providers, and the one that pages preselect."""

from collections.abc import Callable

import pytest

from apps.agents.providers.registry import get_provider, preselected, providers
from apps.core.config import PROVIDERS
from apps.core.errors import InvalidInput
from tests.stand_ins.openai_server import OpenAIStandIn

# One of them looks up its address.
pytestmark = [pytest.mark.django_db, pytest.mark.door]


def test_each_provider_is_found_by_its_id() -> None:
    assert sorted(providers()) == sorted(PROVIDERS)
    assert list(providers())[0] == "openai"
    assert list(providers())[-1] == "builtin"
    assert all(get_provider(id).id == id for id in providers())


def test_an_unknown_provider_is_refused_with_the_list_of_providers() -> None:
    with pytest.raises(InvalidInput, match='provider must be one of: "openai", .*') as raised:
        get_provider("oracle")
    assert raised.value.code == "UNSUPPORTED_PROVIDER"


async def test_with_nothing_connected_search_only_is_preselected() -> None:
    assert await preselected() == "builtin"


async def test_a_server_that_answers_is_preferred(server: OpenAIStandIn) -> None:
    assert await preselected() == "openai"


async def test_the_configured_provider_is_preselected_even_if_it_is_unavailable(
    configure: Callable[..., None], server: OpenAIStandIn
) -> None:
    configure(chat_provider="builtin")
    assert await preselected() == "builtin"
    configure(chat_provider="openai", openai_base_url="")
    assert await preselected() == "openai"


async def test_every_unavailable_provider_gives_a_reason() -> None:
    for provider in providers().values():
        available = await provider.availability()
        assert available.available or available.reason
