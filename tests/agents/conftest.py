from collections.abc import Callable, Iterator

import pytest

# Imported here, where nobody waits: it takes a second, and some of these tests have no patience.
import apps.agents.providers.openai_stream
import apps.lmstudio.sdk  # noqa: F401
from tests.agents.rigs.base import Stage
from tests.agents.rigs.codex import CodexWorld, codex_world
from tests.agents.rigs.lmstudio import LMStudioStage
from tests.agents.rigs.openai import OpenAIStage
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_server import OpenAIStandIn


@pytest.fixture
def server(configure: Callable[..., None]) -> Iterator[OpenAIStandIn]:
    """A scripted OpenAI-compatible server, set as the one to use."""
    with OpenAIStandIn() as server:
        configure(openai_base_url=server.url)
        yield server


@pytest.fixture
def openai_stage(server: OpenAIStandIn) -> Stage:
    return OpenAIStage(server)


@pytest.fixture
def lmstudio(db: None, configure: Callable[..., None]) -> Iterator[LMStudioStandIn]:
    """A scripted LM Studio, set as the one to use."""
    with LMStudioStandIn() as server:
        configure(lmstudio_base_url=server.url)
        yield server


@pytest.fixture
def lmstudio_stage(lmstudio: LMStudioStandIn) -> Stage:
    return LMStudioStage(lmstudio)


@pytest.fixture(scope="session")
def codex_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodexWorld]:
    """Codex before its stand-ins: one for all tests, since it takes a second to start."""
    with codex_world(tmp_path_factory.mktemp("codex")) as world:
        yield world


@pytest.fixture
def codex_stage(codex_home: CodexWorld, configure: Callable[..., None]) -> CodexWorld:
    """Codex, set as one that can be used."""
    configure(mcp_force_codex="", codex_home=codex_home.home, mcp_url=codex_home.mcp.url)
    return codex_home


@pytest.fixture
def builtin_stage() -> Stage:
    return Stage()
