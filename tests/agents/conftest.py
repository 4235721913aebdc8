from collections.abc import Callable, Iterator

import pytest

# Imported before the tests: the import takes a second, and some tests have short timeouts.
import apps.lmstudio.sdk  # noqa: F401
from tests.agents.rigs.base import Backend, Rig
from tests.agents.rigs.codex import CodexBackend, run_codex_backend
from tests.agents.rigs.lmstudio import LMStudioBackend
from tests.agents.rigs.openai import OpenAIBackend
from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_server import OpenAIStandIn


@pytest.fixture
def server(configure: Callable[..., None]) -> Iterator[OpenAIStandIn]:
    """A scripted OpenAI-compatible server, configured as the current one."""
    with OpenAIStandIn() as server:
        configure(openai_base_url=server.url)
        yield server


@pytest.fixture
def openai_backend(server: OpenAIStandIn) -> Backend:
    return OpenAIBackend(server)


@pytest.fixture
def lmstudio(db: None, configure: Callable[..., None]) -> Iterator[LMStudioStandIn]:
    """A scripted LM Studio, configured as the current one."""
    with LMStudioStandIn() as server:
        configure(lmstudio_base_url=server.url)
        yield server


@pytest.fixture
def lmstudio_backend(lmstudio: LMStudioStandIn) -> Backend:
    return LMStudioBackend(lmstudio)


@pytest.fixture(scope="session")
def codex_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodexBackend]:
    """Codex with its stand-ins: one for all tests, because it takes a second to start."""
    with run_codex_backend(tmp_path_factory.mktemp("codex")) as backend:
        yield backend


@pytest.fixture
def codex_backend(codex_home: CodexBackend, configure: Callable[..., None]) -> CodexBackend:
    """Codex, configured as available."""
    configure(mcp_force_codex="", codex_home=codex_home.home, mcp_url=codex_home.mcp.url)
    return codex_home


@pytest.fixture
def builtin_backend() -> Backend:
    return Backend()


@pytest.fixture
def backend(rig: Rig, request: pytest.FixtureRequest) -> Backend:
    scenario = request.node.callspec.params.get("scenario")
    made: Backend = request.getfixturevalue(rig.backend)
    if scenario is not None:
        made.set_tools(scenario.tools_offered)
        if scenario.end == "PROVIDER_TIMEOUT":
            # A short timeout for scenarios with silence.
            idle_timeout = {
                "first_byte_seconds": 60.0 if scenario.text else 0.5,
                "idle_seconds": 2.0,
            }
            request.getfixturevalue("configure")(**idle_timeout)
    return made
