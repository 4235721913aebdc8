"""The cutoff in the default mode: distant matches pass only with evidence in their words."""

from pathlib import Path

import pytest

from apps.core.config import config
from tests.retrieval.conftest import Ask
from tests.support.ingested import SAMPLE, ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FILES = SAMPLE | {
    f"src/{name}.py": f"def {name}(entry):\n    # the history of the {name}\n    return entry\n"
    for name in ("ledger", "journal", "archive", "record")
}


@pytest.fixture
def repository(folder: Path) -> None:
    ingest(write_files(folder, FILES), "lighthouse")
    assert config().retrieval_mode == "hybrid"


NONSENSE = "history of the roman empire"


def test_one_common_word_does_not_pass_a_match(repository: None, ask: Ask, configure) -> None:
    configure(retrieval_cutoff=0.2, retrieval_fallback_chunks=2)
    results = ask(query=NONSENSE)["results"]
    assert len(results) == 2
    assert all(result["weak"] for result in results)


def test_a_match_with_most_of_the_words_passes(repository: None, ask: Ask, configure) -> None:
    configure(retrieval_cutoff=0.2)
    results = ask(query="history of the ledger")["results"]
    assert results[0]["relPath"] == "src/ledger.py"
    assert results[0]["score"] > 0.2
    assert not any("weak" in result for result in results)


@pytest.mark.parametrize(
    ("query", "cutoff"), [("saveShip", 0.2), ("where is backoff_delay used in the empire", 1.0)]
)
def test_a_match_with_the_identifier_passes(
    repository: None, ask: Ask, configure, query: str, cutoff: float
) -> None:
    configure(retrieval_cutoff=cutoff)
    results = ask(query=query)["results"]
    assert "weak" not in results[0] and results[0]["score"] > cutoff
    assert all("saveShip" in r["chunk"] or "backoff_delay" in r["chunk"] for r in results)


def test_without_a_cutoff_everything_passes(repository: None, ask: Ask, configure) -> None:
    configure(retrieval_cutoff_disabled=True)
    results = ask(query=NONSENSE)["results"]
    assert len(results) > 2
    assert not any("weak" in result for result in results)
