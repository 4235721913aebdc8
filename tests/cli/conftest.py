"""What the tests of the command share: two ingested repositories and their server; the server with
the tools of the conformance suite."""

from collections.abc import Iterator

import pytest

from tests.cli.command import Command, command
from tests.cli.installing import data, machine, run
from tests.cli.wheels import installed, wheel
from tests.mcp.conftest import served

__all__ = ["data", "installed", "machine", "run", "served", "wheel"]


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """`lighthouse` and `harbour`, ingested by the first verb, which starts the server. The tests of
    this worker share them: leave the index as you found it."""
    with command(tmp_path_factory.mktemp("home")) as made:
        made.run("ingest")
        made.run("ingest", str(made.home / "src" / "harbour"))
        yield made
