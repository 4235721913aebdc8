"""Two servers, each with a database of its own, on one Chroma server: neither deletes the other's
vectors, whatever becomes of its database."""

from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from tests.browser.product import Product, running
from tests.support.following import server_client
from tests.support.index import Server, server  # noqa: F401 - a fixture
from tests.support.ingested import write_files
from tests.support.served import ingest_into, until_followed

pytestmark = pytest.mark.door

PATIENCE = 60


def serving(folder: Path, server: Server) -> AbstractContextManager[Product]:  # noqa: F811
    return running(folder, CHROMA_URL=server.url, CODEINFO_CHROMA="follow")


def ingest(product: Product, name: str) -> None:
    """Returns when Chroma has followed."""
    # Each has files of its own: folders with equal files would share one index.
    repo = write_files(product.repos / name, {f"{name}.py": f"def {name}():\n    return 1\n"})
    ingest_into(product, repo)
    until_followed(product)


def vector_counts(url: str) -> dict[str, int]:
    """How many vectors each collection has, as the Chroma server says."""
    # Chroma's own client never closes its connections.
    with server_client(url) as client:
        return {each.name: each.count() for each in client.list_collections()}


@pytest.mark.fault("The database is lost or replaced")
def test_two_installations_on_one_chroma_server_keep_their_vectors(
    tmp_path: Path,
    server: Server,  # noqa: F811
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    with (
        serving(here, server) as one,
        serving(there, server) as other,
    ):
        ingest(one, "lighthouse")
        ingest(other, "lighthouse")
    both = vector_counts(server.url)
    assert len(both) == 2 and all(both.values())
    # Its own database known, then gone.
    with serving(here, server) as one:
        ingest(one, "second")
        assert both.items() <= vector_counts(server.url).items()
    for file in (here / "data").glob("codeinfo.sqlite3*"):
        file.unlink()
    with serving(here, server) as one:
        ingest(one, "third")
        assert both.items() <= vector_counts(server.url).items()
        orphans_part = httpx.get(f"{one.url}/health", timeout=PATIENCE).json()["parts"]["orphans"]
        assert f"{one.repos}/second" in orphans_part["detail"]
        assert f"{other.repos}" not in orphans_part["detail"]
