from collections.abc import Callable, Iterator

import pytest

# Imported here, where nobody waits: it takes a second.
import apps.lmstudio.sdk  # noqa: F401
from tests.stand_ins.lmstudio_server import LMStudioStandIn


@pytest.fixture
def server(configure: Callable[..., None]) -> Iterator[LMStudioStandIn]:
    """A scripted LM Studio, set as the one to use."""
    with LMStudioStandIn() as server:
        configure(lmstudio_base_url=server.url)
        yield server
