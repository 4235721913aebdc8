from collections.abc import Callable, Iterator

import pytest

# Imported here, where nobody waits: it takes a second, and some of these tests have no patience.
import apps.agents.providers.openai_stream
import apps.lmstudio.sdk  # noqa: F401
from tests.agents.rigs.base import Stage
from tests.agents.rigs.lmstudio import LMStudioStage
from tests.agents.rigs.openai import OpenAIStage
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_server import OpenAIStandIn


@pytest.fixture
def server(turn_knobs: Callable[..., None]) -> Iterator[OpenAIStandIn]:
    """A scripted OpenAI-compatible server, set as the one to use."""
    with OpenAIStandIn() as server:
        turn_knobs(openai_base_url=server.url)
        yield server


@pytest.fixture
def openai_stage(server: OpenAIStandIn) -> Stage:
    return OpenAIStage(server)


@pytest.fixture
def lmstudio(db: None, turn_knobs: Callable[..., None]) -> Iterator[LMStudioStandIn]:
    """A scripted LM Studio, set as the one to use."""
    with LMStudioStandIn() as server:
        turn_knobs(lmstudio_base_url=server.url)
        yield server


@pytest.fixture
def lmstudio_stage(lmstudio: LMStudioStandIn) -> Stage:
    return LMStudioStage(lmstudio)


@pytest.fixture
def builtin_stage() -> Stage:
    return Stage()
