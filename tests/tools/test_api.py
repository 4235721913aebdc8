"""The JSON API of search: invalid input, errors, and the list of repositories."""

import json
import logging
from datetime import UTC, datetime

import pytest
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import OperationalError
from django.test import Client

from apps.core.errors import NotFound, Unavailable
from apps.embedding.static import MODEL_ID
from apps.index.models import IndexLock, IngestRun
from tests.retrieval.conftest import Ask, Shelf

pytestmark = pytest.mark.django_db

SEARCH = "/tools/vector-search"


def post(client: Client, body: object) -> tuple[int, dict]:
    response = client.post(SEARCH, body, content_type="application/json")
    return response.status_code, response.json()


# --- input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [None, "", "   ", 7, True, ["x"], {}])
def test_a_query_must_be_a_text_that_is_not_blank(
    shelf: Shelf, client: Client, query: object
) -> None:
    is_blank = query is None or isinstance(query, str)
    problem = "query is required" if is_blank else "query must be a string"
    assert post(client, {"query": query}) == (
        400,
        {"error": "VALIDATION_FAILED", "details": [problem]},
    )


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("context", "question"),
        ("symbol-definitions", "name"),
        ("find-callers", "name"),
        ("grep", "pattern"),
    ],
)
def test_every_tool_says_that_its_text_must_be_one(client: Client, path: str, key: str) -> None:
    for value, problem in ((7, f"{key} must be a string"), ("", f"{key} is required")):
        response = client.post(f"/tools/{path}", {key: value}, content_type="application/json")
        assert (response.status_code, response.json()["details"]) == (400, [problem])


@pytest.mark.parametrize("repository", ["   ", 7, True, [""], ["x", 7], {"a": 1}, {}])
def test_a_repository_must_be_a_name(shelf: Shelf, client: Client, repository: object) -> None:
    assert post(client, {"query": "x", "repository": repository}) == (
        400,
        {
            "error": "VALIDATION_FAILED",
            "details": ["repository must be a non-empty string when provided"],
        },
    )


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("limit", ["5", "many", True, 2.5, [5], {"a": 1}, {}, []])
def test_a_limit_must_be_a_whole_number(shelf: Shelf, client: Client, limit: object) -> None:
    assert post(client, {"query": "x", "limit": limit}) == (
        400,
        {"error": "VALIDATION_FAILED", "details": ["limit must be an integer"]},
    )


def test_all_problems_are_listed_at_once(shelf: Shelf, client: Client) -> None:
    status, answer = post(client, {"query": "", "repository": 1, "limit": "5"})
    assert (status, len(answer["details"])) == (400, 3)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        *[(None, 5), (0, 5), ("", 5), (False, 5)],
        *[(-3, 1), (1, 1), (20, 20), (21, 20), (5.0, 5), (1e300, 20)],
    ],
)
def test_limits_are_clamped_and_blank_ones_are_the_default(
    shelf: Shelf, ask: Ask, limit: object, expected: int
) -> None:
    for i in range(25):
        shelf.put(0.1, f"{i}.py")
    assert len(ask(limit=limit)["results"]) == expected


@pytest.mark.parametrize("repository", [None, "", 0, False])
def test_a_blank_repository_is_all_of_them(shelf: Shelf, ask: Ask, repository: object) -> None:
    shelf.put(0.1, repo="one")
    shelf.put(0.2, repo="two")
    assert len(ask(repository=repository)["results"]) == 2


def test_unknown_keys_are_ignored_also_those_of_mcp(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1, text="one\ntwo\nthree")
    (row,) = ask(colour="red", offset=3, snippet_lines=1, format="compact")["results"]
    assert row["chunk"] == "one\ntwo\nthree"


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize(
    "body",
    ["{", "", "[]", '"text"', "null", "7", '{"query": NaN}', b"\xff\xfe", "[" * 200_000],
    ids=["cut", "empty", "list", "string", "null", "number", "nan", "not-utf8", "deep"],
)
def test_a_body_that_is_not_an_object_is_bad_input(
    shelf: Shelf, client: Client, body: str | bytes
) -> None:
    status, answer = post(client, body)
    assert (status, answer["error"]) == (400, "VALIDATION_FAILED")
    assert answer["details"]


async def test_a_chunked_body_is_read_like_any_other() -> None:
    headers = {
        b"host": b"localhost",
        b"content-type": b"application/json",
        b"transfer-encoding": b"chunked",
    }
    scope = {"type": "http", "method": "POST", "path": SEARCH, "headers": [*headers.items()]}
    door = ApplicationCommunicator(get_asgi_application(), scope)
    await door.send_input({"type": "http.request", "body": b'{"query": "x", ', "more_body": True})
    await door.send_input({"type": "http.request", "body": b'"limit": "5"}'})
    assert (await door.receive_output())["status"] == 400
    answer = json.loads((await door.receive_output())["body"])
    assert answer["details"] == ["limit must be an integer"]


def test_a_lone_surrogate_in_a_query_is_accepted(shelf: Shelf, client: Client) -> None:
    shelf.put(0.1)
    status, answer = post(client, '{"query": "\\ud800 x", "repository": null}')
    assert (status, len(answer["results"])) == (200, 1)


def test_a_body_of_another_type_is_refused(shelf: Shelf, client: Client) -> None:
    response = client.post(SEARCH, "query=x", content_type="application/x-www-form-urlencoded")
    assert (response.status_code, response.json()["error"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_beyond_the_cap_is_refused(shelf: Shelf, client: Client) -> None:
    status, answer = post(client, {"query": "x" * (1 << 20)})
    assert (status, answer["error"]) == (413, "PAYLOAD_TOO_LARGE")


def test_other_methods_are_refused_in_json(shelf: Shelf, client: Client) -> None:
    assert client.get(SEARCH).json()["error"] == "METHOD_NOT_ALLOWED"
    assert (
        client.post("/tools/ingested-repos", {}, content_type="application/json").status_code == 405
    )


# --- order of the checks --------------------------------------------------------------------------


def test_invalid_input_takes_precedence_over_a_missing_index(client: Client) -> None:
    assert post(client, {"query": ""})[0] == 400


def test_without_an_index_an_ingest_is_required(client: Client) -> None:
    assert post(client, {"query": "x", "repository": "unknown"}) == (
        409,
        {
            "error": "INGEST_REQUIRED",
            "message": "INGEST_REQUIRED: run ingest before vector search",
        },
    )


@pytest.mark.fault("A question is refused")
def test_an_unknown_repository_takes_precedence_over_a_missing_model(
    shelf: Shelf, client: Client
) -> None:
    IndexLock.objects.update(model="gone")
    shelf.put(0.1)
    assert post(client, {"query": "x", "repository": "other"}) == (404, {"error": "REPO_NOT_FOUND"})


def test_a_repository_is_found_by_its_trimmed_name_exactly(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1, text="mine", repo="  spaced  ")
    shelf.put(0.1, repo="other")
    answer = ask(repository="spaced ")
    assert [(r["repo"], r["chunk"]) for r in answer["results"]] == [("spaced", "mine")]


def test_of_repositories_with_one_id_the_last_ingested_answers(shelf: Shelf, ask: Ask) -> None:
    shelf.put(0.1, text="older", repo="same")
    shelf.put(0.2, text="newer", repo=" same")
    assert [result["chunk"] for result in ask(repository="same")["results"]] == ["newer"]


def test_a_root_that_is_not_published_cannot_be_searched(shelf: Shelf, client: Client) -> None:
    shelf.root("new", generation=0)
    assert post(client, {"query": "x", "repository": "new"})[0] == 404


@pytest.mark.parametrize(
    "reason",
    [
        Unavailable("no server is configured", code="EMBED_MODEL_MISSING"),
        NotFound("no server is configured", code="MODEL_NOT_FOUND"),
    ],
)
def test_a_missing_model_is_named(
    shelf: Shelf, client: Client, monkeypatch: pytest.MonkeyPatch, reason: Exception
) -> None:
    def missing(model_id: str) -> object:
        raise reason

    monkeypatch.setattr("apps.retrieval.search.get_embedder", missing)
    assert post(client, {"query": "x"}) == (
        503,
        {
            "error": "EMBED_MODEL_MISSING",
            "message": f"EMBED_MODEL_MISSING: {MODEL_ID} not available (no server is configured)",
            "modelId": MODEL_ID,
        },
    )


@pytest.mark.fault("Chroma is unavailable")
@pytest.mark.parametrize("code", ["CHROMA_UNAVAILABLE", "EMBEDDER_UNAVAILABLE"])
def test_any_other_failure_is_chroma_unavailable(shelf: Shelf, client: Client, code: str) -> None:
    shelf.put(0.1)
    shelf.fails = Unavailable("it is gone", code=code)
    assert post(client, {"query": "x"}) == (
        502,
        {"error": "CHROMA_UNAVAILABLE", "message": "it is gone"},
    )


# --- repositories ---------------------------------------------------------------------------------


def test_without_an_index_the_list_is_empty(client: Client) -> None:
    response = client.get("/tools/ingested-repos")
    assert (response.status_code, response.json()) == (200, {"repos": [], "lockedModelId": None})


def test_without_the_database_the_list_is_unavailable(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked() -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("apps.tools.api.list_repositories", locked)
    response = client.get("/tools/ingested-repos")
    assert (response.status_code, response.json()["error"]) == (503, "DATABASE_UNAVAILABLE")


def test_repositories_are_listed_last_ingested_first(shelf: Shelf, client: Client) -> None:
    older, newer = shelf.root("older"), shelf.root(" newer ")
    shelf.root("unpublished", generation=0)
    older.last_ingest_at = datetime(2025, 1, 2, 3, 4, 5, 678900, tzinfo=UTC)
    older.save()
    newer.description = "what it is"
    newer.last_error = "Interrupted"
    newer.last_ingest_at = datetime(2025, 2, 1, tzinfo=UTC)
    newer.files, newer.chunks, newer.embedded = 3, 7, 6
    newer.save()
    assert client.get("/tools/ingested-repos").json() == {
        "repos": [
            {
                "id": "newer",
                "description": "what it is",
                "containerPath": "/src/ newer ",
                "hostPath": "/src/ newer ",
                "lastIngestAt": "2025-02-01T00:00:00.000Z",
                "modelId": MODEL_ID,
                "counts": {"files": 3, "chunks": 7, "embedded": 6},
                "lastError": "Interrupted",
            },
            {
                "id": "older",
                "description": None,
                "containerPath": "/src/older",
                "hostPath": "/src/older",
                "lastIngestAt": "2025-01-02T03:04:05.678Z",
                "modelId": MODEL_ID,
                "counts": {"files": 0, "chunks": 0, "embedded": 0},
                "lastError": None,
            },
        ],
        "lockedModelId": MODEL_ID,
    }


def test_a_repository_that_is_being_ingested_has_a_state(shelf: Shelf, client: Client) -> None:
    root = shelf.root("one")
    shelf.root("two")
    run = {"operation": "reembed", "root": root, "path": root.path, "name": "one"}
    IngestRun.objects.create(**run, model=MODEL_ID, state="embedding")
    listed = client.get("/tools/ingested-repos").json()["repos"]
    assert {repo["id"]: repo.get("state") for repo in listed} == {"one": "embedding", "two": None}


def test_an_unmapped_root_has_a_warning(shelf: Shelf, client: Client, configure) -> None:
    configure(in_container=True)
    shelf.root()
    [repo] = client.get("/tools/ingested-repos").json()["repos"]
    assert repo["hostPathWarning"] == "HOST_INGEST_DIR not set; using container path base"


# --- logs -----------------------------------------------------------------------------------------


def test_a_search_logs_its_size_and_never_its_words(
    shelf: Shelf, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.put(0.1, text="the secret text")
    with caplog.at_level(logging.DEBUG, "codeinfo"):
        ask(query="my own words", limit=3)
    logged = [(record.getMessage(), record.context) for record in caplog.records]
    facts = {"repository": "all", "limit": 3, "results": 1, "modelId": MODEL_ID}
    assert ("tools vector search", facts) in logged
    assert "chat tool usage" not in [message for message, _ in logged]
    everything = json.dumps([record.__dict__ for record in caplog.records], default=str)
    assert "my own words" not in everything
    assert "the secret text" not in everything
