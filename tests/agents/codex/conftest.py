from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.rigs.codex import CodexBackend, run_codex_backend


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodexBackend]:
    """A separate Codex for this module, which its tests may break."""
    with run_codex_backend(tmp_path_factory.mktemp("codex")) as backend:
        yield backend


@pytest.fixture
def codex(backend: CodexBackend, configure: Callable[..., None], tmp_path: Path) -> CodexBackend:
    """The separate Codex, configured as the current one."""
    configure(
        mcp_force_codex="",
        codex_home=backend.home,
        codex_workdir=tmp_path / "work",
        mcp_url=backend.mcp.url,
    )
    return backend
