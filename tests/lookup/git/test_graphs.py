"""A repository whose answers are slow gets a graph of its commits, which changes no answer."""

from pathlib import Path

import pytest
from django.test import Client

from apps.lookup.git.graphs import graph_of, is_due
from tests.support.git import commit_all, git, init
from tests.support.ingested import ingest, write_files
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.fixture
def repository(folder: Path, index: None) -> Path:
    path = init(folder / "repo")
    for number in range(4):
        write_files(path, {f"{number % 2}.py": f"N = {number}\n"})
        commit_all(path, f"Commit {number}")
    ingest(path)
    return path


def answers(client: Client) -> list[object]:
    forms: tuple[dict[str, str], ...] = ({}, {"path": "1.py"}, {"of": "blame", "path": "1.py"})
    found = []
    for form in forms:
        body = {"repository": "repo", **form}
        response = client.post("/tools/history", body, content_type="application/json")
        assert response.status_code == 200, response.content
        found.append(response.json())
    return found


def test_a_slow_answer_makes_the_next_ones_fast_and_no_other(
    repository: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = graph_of(repository / ".git") / "info/commit-graph"
    # No answer is slow, however busy the machine is.
    monkeypatch.setattr("apps.lookup.git.objects.SLOW", 1_000)
    before = answers(client)
    assert not graph.exists()
    monkeypatch.setattr("apps.lookup.git.objects.SLOW", 0)

    def is_written() -> bool:
        # One graph is written at a time, perhaps that of another repository.
        assert answers(client) == before
        return graph.is_file()

    wait_until(is_written)
    assert answers(client) == before
    whole = graph.read_bytes()
    for damage in (b"", b"CGPH\x01\x01\x05\x00" + b"\xff" * 200, whole[:-300]):
        graph.unlink(missing_ok=True)
        graph.write_bytes(damage)
        assert answers(client) == before
        wait_until(is_written)


def test_a_graph_outlives_what_fails_without_it_too(
    repository: Path, folder: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.lookup.git.objects.SLOW", 0)
    graph = graph_of(repository / ".git") / "info/commit-graph"

    def is_written() -> bool:
        answers(client)
        return graph.is_file()

    wait_until(is_written)
    # Without its texts, as in a partial clone.
    blob = git(repository, "rev-parse", "HEAD:1.py").strip()
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    body = {"repository": "repo", "of": "blame", "path": "1.py"}
    response = client.post("/tools/history", body, content_type="application/json")
    assert response.json()["error"] == "GIT_FAILED"
    assert graph.is_file()


def test_a_graph_that_takes_too_long_is_not_tried_again(
    repository: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.lookup.git.objects.SLOW", 0)
    monkeypatch.setattr("apps.lookup.git.graphs.SECONDS", 0)
    folder = graph_of(repository / ".git")

    def is_given_up() -> bool:
        answers(client)
        return not is_due(folder)

    assert is_due(folder)
    wait_until(is_given_up)
    assert not (folder / "info/commit-graph").exists()
