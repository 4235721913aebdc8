"""Two ingested repositories and their server, shared by the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.cli.command import Command, command


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """`lighthouse` and `harbour`, ingested by the first verb, which starts the server."""
    with command(tmp_path_factory.mktemp("home")) as made:
        made.run("ingest")
        made.run("ingest", str(made.home / "src" / "harbour"))
        yield made
