from collections.abc import Callable, Iterator

import pytest

# Imported before the tests: the import takes a second.
import apps.lmstudio.sdk  # noqa: F401
from tests.stand_ins.lmstudio_server import LMStudioStandIn


@pytest.fixture
def server(configure: Callable[..., None]) -> Iterator[LMStudioStandIn]:
    """A scripted LM Studio, configured as the current one."""
    with LMStudioStandIn() as server:
        configure(lmstudio_base_url=server.url)
        yield server
