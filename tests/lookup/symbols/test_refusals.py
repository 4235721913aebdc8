"""Errors of the symbol endpoints, in the envelope of `/tools/*`."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.index.models import IndexLock
from apps.retrieval.query import LANGUAGES
from tests.lookup.symbols.conftest import Post

pytestmark = pytest.mark.django_db

NAMED = ("symbol-definitions", "symbol-references")
ALL = {
    "symbol-definitions": {"name": "x"},
    "symbol-references": {"name": "x"},
    "file-outline": {"repository": "x", "path": "x"},
}
UNKNOWN = f"language is not known: klingon (known: {', '.join(LANGUAGES)})"
REPOSITORY = "repository must be a non-empty string when provided"


@pytest.mark.parametrize("tool", NAMED)
@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "name is required"),
        *[({"name": name}, "name is required") for name in ("", "  ", "()", None)],
        *[({"name": name}, "name must be a string") for name in (7, ["x"])],
        ({"name": "x" * 201}, "name must be one line of at most 200 characters"),
        ({"name": "a\nb"}, "name must be one line of at most 200 characters"),
        *[({"name": "x", "repository": each}, REPOSITORY) for each in (7, "  ", [""], {"a": 1})],
        *[({"name": "x", "limit": each}, "limit must be an integer") for each in ("5", True, 2.5)],
        ({"name": "x", "path": "/etc"}, "path must be relative to the repository"),
        ({"name": "x", "path": "a/../b"}, "path must not hold .."),
        ({"name": "x", "path": 7}, "path must be a non-empty string when provided"),
        (
            {"name": "x", "language": "klingon"},
            UNKNOWN,
        ),
    ],
)
def test_invalid_arguments_are_bad_input(
    post: Post, tool: str, body: dict[str, Any], problem: str
) -> None:
    assert post(tool, **body) == (400, {"error": "VALIDATION_FAILED", "details": [problem]})


@pytest.mark.parametrize("tool", NAMED)
def test_all_problems_are_listed_at_once(post: Post, tool: str) -> None:
    status, answer = post(tool, name="", repository=7, limit="x", language="klingon")
    assert (status, len(answer["details"])) == (400, 4)


@pytest.mark.parametrize(
    ("body", "details"),
    [
        ({}, ["repository is required", "path is required"]),
        ({"repository": "x"}, ["path is required"]),
        ({"repository": ["x"], "path": " "}, ["repository is required", "path is required"]),
        ({"repository": "x", "path": "a\0b"}, ["path must not hold a NUL"]),
    ],
)
def test_an_outline_needs_a_repository_and_a_path(
    post: Post, body: dict[str, Any], details: list[str]
) -> None:
    expected = {"error": "VALIDATION_FAILED", "details": details}
    assert post("file-outline", **body) == (400, expected)


@pytest.mark.parametrize("tool", ALL)
@pytest.mark.parametrize("body", ["[]", '"text"', "{", "7"])
def test_a_body_that_is_not_an_object_is_bad_input(client: Client, tool: str, body: str) -> None:
    response = client.post(f"/tools/{tool}", body, content_type="application/json")
    assert (response.status_code, response.json()["error"]) == (400, "VALIDATION_FAILED")


@pytest.mark.parametrize("tool", ALL)
def test_only_post_is_allowed(client: Client, tool: str) -> None:
    response = client.get(f"/tools/{tool}")
    assert (response.status_code, response.json()["error"]) == (405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize("tool", ALL)
def test_without_an_index_an_ingest_is_required(post: Post, tool: str) -> None:
    status, answer = post(tool, **ALL[tool])
    assert (status, answer["error"]) == (409, "INGEST_REQUIRED")
    assert not IndexLock.objects.exists()


@pytest.mark.door
@pytest.mark.parametrize("tool", ALL)
def test_an_unknown_repository_lists_the_known_ones(harbour: Path, post: Post, tool: str) -> None:
    status, answer = post(tool, **ALL[tool] | {"repository": "lighthouse"})
    assert (status, answer["error"], answer["repo"]) == (404, "REPO_NOT_FOUND", "lighthouse")
    assert answer["message"].endswith("Known ids: 'harbour', 'quay'.")


@pytest.mark.door
@pytest.mark.parametrize("path", ["nowhere.py", "../harbour/notes.txt", "/etc/passwd", "src"])
def test_a_file_that_is_not_ingested_is_not_found(harbour: Path, post: Post, path: str) -> None:
    status, answer = post("file-outline", repository="harbour", path=path)
    assert (status, answer["error"]) == (404, "FILE_NOT_FOUND")


@pytest.mark.door
def test_a_missing_file_lists_files_with_that_name(harbour: Path, post: Post) -> None:
    _, answer = post("file-outline", repository="harbour", path="client.py")
    assert answer["message"] == (
        "client.py is not among the ingested files of harbour. There is src/harbour/client.py."
    )
