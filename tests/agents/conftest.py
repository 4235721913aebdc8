from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

# Imported here, where nobody waits: it takes a second, and some of these tests have no patience.
import apps.agents.providers.openai_stream  # noqa: F401
from tests.stand_ins.openai_server import OpenAIStandIn

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture
def server(turn_knobs: Callable[..., None]) -> Iterator[OpenAIStandIn]:
    """A scripted OpenAI-compatible server, set as the one to use."""
    with OpenAIStandIn() as server:
        turn_knobs(openai_base_url=server.url)
        yield server
