"""A query that names a repository gets the matches of that repository first."""

from pathlib import Path

import pytest

from tests.retrieval.conftest import Ask
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

RETRY = "def retry_request(request):\n    # send it again after a failure\n    send(request)\n"
# `beta` says it in more words: without a name it comes first.
MORE = "def retry_failed_request(request):\n    # retry a failed request\n    retry(request)\n"


@pytest.fixture
def repositories(tmp_path: Path, configure) -> None:
    configure(ingest_base=(tmp_path,))
    ingest(write_files(tmp_path / "alpha", {"net.py": RETRY, "other.py": "LIMIT = 3\n"}), "alpha")
    ingest(write_files(tmp_path / "beta", {"net.py": MORE, "alpha.py": "alpha = 3\n"}), "beta")


def repos(ask: Ask, query: str, **more: str) -> list[str]:
    return [result["repo"] for result in ask(query=query, **more)["results"]]


def test_without_a_name_the_best_match_comes_first(repositories: None, ask: Ask) -> None:
    assert repos(ask, "retry a failed request")[0] == "beta"


@pytest.mark.parametrize(
    "query",
    [
        "retry a failed request in alpha",
        "How does Alpha retry a failed request?",
        "retry a failed request in the alpha repository",
        "alpha's retry of a failed request",
    ],
)
def test_matches_of_the_named_repository_come_first(
    repositories: None, ask: Ask, query: str
) -> None:
    found = ask(query=query)["results"]
    assert (found[0]["repo"], found[0]["relPath"]) == ("alpha", "net.py")
    assert "beta" in [result["repo"] for result in found]


@pytest.mark.parametrize("query", ["retry in alpha.py", "retry in src/alpha", "retry alpha-beta"])
def test_part_of_another_name_is_not_the_name(repositories: None, ask: Ask, query: str) -> None:
    assert repos(ask, query)[0] == "beta"


def test_the_name_alone_is_searched(repositories: None, ask: Ask) -> None:
    assert ask(query="alpha")["results"]


def test_words_that_no_passage_has_are_named(repositories: None, ask: Ask) -> None:
    assert ask(query="how does axios retry")["missingWords"] == ["axios"]
    assert "missingWords" not in ask(query="how does beta retry a request")


@pytest.mark.parametrize("query", ["retry a failed request in pelican", "how does pelican retry"])
def test_a_rare_part_of_an_id_names_its_repository(
    repositories: None, ask: Ask, tmp_path: Path, query: str
) -> None:
    ingest(write_files(tmp_path / "pelican-core", {"net.py": RETRY}), "pelican-core")
    assert repos(ask, query)[0] == "pelican-core"


def test_a_common_part_of_an_id_names_none(repositories: None, ask: Ask, tmp_path: Path) -> None:
    ingest(write_files(tmp_path / "request-core", {"net.py": "LIMIT = 3\n"}), "request-core")
    assert repos(ask, "retry a failed request")[0] == "beta"
