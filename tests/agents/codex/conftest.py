from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.rigs.codex import CodexWorld, codex_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodexWorld]:
    """Codex of this module's own, which its tests may break."""
    with codex_world(tmp_path_factory.mktemp("codex")) as world:
        yield world


@pytest.fixture
def codex(world: CodexWorld, configure: Callable[..., None], tmp_path: Path) -> CodexWorld:
    """Set as the Codex to use."""
    configure(
        mcp_force_codex="",
        codex_home=world.home,
        codex_workdir=tmp_path / "work",
        mcp_url=world.mcp.url,
    )
    return world
