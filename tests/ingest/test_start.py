"""`POST /ingest/start`, reembed and remove at the door: what is refused, and in which order."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from apps.embedding.static import MODEL_ID
from apps.index.models import IndexLock, IngestRun, Root
from tests.ingest.requests import post

pytestmark = pytest.mark.django_db

MODEL = MODEL_ID


def body(repo: Path, **changes: Any) -> dict[str, Any]:
    return {"path": str(repo), "name": "lighthouse", "model": MODEL, **changes}


def published(path: str, name: str = "known", **values: Any) -> Root:
    defaults = {"generation": 1, "embedded": 1, "model": MODEL, "last_ingest_at": timezone.now()}
    return Root.objects.create(path=path, name=name, **(defaults | values))


def lock(model: str = MODEL) -> None:
    IndexLock.objects.create(model=model, dimension=256)


def test_a_start_is_accepted_before_anything_is_read(client: Client, repo: Path) -> None:
    status, answer = post(client, "/ingest/start", body(repo, description="Ships"))
    assert (status, list(answer)) == (202, ["runId"])
    run = IngestRun.objects.get(id=answer["runId"])
    assert (run.state, run.path, run.model) == ("queued", str(repo), MODEL)
    assert (run.name, run.description, run.dry_run) == ("lighthouse", "Ships", False)
    status, wire = 200, client.get(f"/ingest/status/{run.id}").json()
    counts = {"files": 0, "chunks": 0, "embedded": 0, "skipped": 0}
    assert wire == {
        "runId": answer["runId"],
        "state": "queued",
        "counts": counts,
        "message": "Queued",
    }


@pytest.mark.door
@pytest.mark.parametrize(
    "changes",
    [
        {"path": None},
        {"path": ""},
        {"path": 5},
        {"path": ["/tmp"]},
        {"path": "/tmp/\0"},
        {"path": "/tmp/\udcff"},
        {"name": None},
        {"name": "   "},
        {"name": True},
        {"name": "x" * 256},
        {"model": None},
        {"model": {}},
        {"model": "no-such-model"},
        {"description": 1},
        {"dryRun": "true"},
        {"dryRun": 1},
        {"dryRun": None},
        {"plainFolder": "true"},
        {"plainFolder": 1},
        {"plainFolder": None},
    ],
)
def test_wrong_input_is_400_validation(client: Client, repo: Path, changes: dict[str, Any]) -> None:
    status, answer = post(client, "/ingest/start", body(repo, **changes))
    assert (status, answer["status"], answer["code"]) == (400, "error", "VALIDATION")
    assert not IngestRun.objects.exists()


@pytest.mark.parametrize("missing", ["path", "name", "model"])
def test_a_missing_field_is_named(client: Client, repo: Path, missing: str) -> None:
    arguments = body(repo)
    del arguments[missing]
    status, answer = post(client, "/ingest/start", arguments)
    assert (status, answer["code"]) == (400, "VALIDATION")
    assert missing in answer["message"]


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("raw", ["", "{", "[]", '"text"', "null", "12"])
def test_a_body_that_is_no_object_is_400(client: Client, raw: str) -> None:
    answer = client.post("/ingest/start", raw, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION")


def test_another_content_type_is_415(client: Client, repo: Path) -> None:
    answer = client.post("/ingest/start", json.dumps(body(repo)), content_type="text/plain")
    assert answer.status_code == 415


def test_unknown_keys_are_ignored(client: Client, repo: Path) -> None:
    assert post(client, "/ingest/start", body(repo, shade="blue"))[0] == 202


@pytest.mark.fault("A path that leads outside", "An ingest is refused")
@pytest.mark.parametrize(
    ("where", "status", "code"),
    [
        ("nowhere", 404, "NOT_FOUND"),
        ("main.txt", 400, "NOT_DIRECTORY"),
        ("../../../../../../etc", 400, "OUTSIDE_BASE"),
    ],
)
def test_a_wrong_folder_is_told_at_once(
    client: Client, repo: Path, where: str, status: int, code: str
) -> None:
    got, answer = post(client, "/ingest/start", body(repo, path=f"{repo}/{where}"))
    assert (got, answer["status"], answer["code"]) == (status, "error", code)
    assert not IngestRun.objects.exists()


@pytest.mark.fault("A path that leads outside")
def test_a_relative_path_is_outside_the_base(client: Client, repo: Path) -> None:
    assert post(client, "/ingest/start", body(repo, path="lighthouse"))[1]["code"] == "OUTSIDE_BASE"


@pytest.mark.fault("Another embedding model")
def test_another_model_than_the_locked_one_is_409(client: Client, repo: Path) -> None:
    lock("openai:nomic")
    status, answer = post(client, "/ingest/start", body(repo))
    assert (status, answer["code"]) == (409, "MODEL_LOCKED")
    assert answer["lockedModelId"] == "openai:nomic"


@pytest.mark.parametrize("model_id", ["openai:nomic", "nomic"])
def test_the_locked_model_may_be_given_bare(client: Client, repo: Path, model_id: str) -> None:
    lock("openai:nomic")
    status, answer = post(client, "/ingest/start", body(repo, model=model_id))
    assert status == 202
    assert IngestRun.objects.get(id=answer["runId"]).model == "openai:nomic"


@pytest.mark.fault("An ingest is refused")
def test_a_name_belongs_to_one_folder(client: Client, repo: Path) -> None:
    published("/elsewhere", name="lighthouse")
    status, answer = post(client, "/ingest/start", body(repo))
    assert (status, answer["code"]) == (409, "NAME_TAKEN")


def test_a_known_folder_keeps_its_name_for_itself(client: Client, repo: Path) -> None:
    published(str(repo), name="lighthouse")
    assert post(client, "/ingest/start", body(repo))[0] == 202


@pytest.mark.fault("An ingest is refused")
def test_a_second_start_is_busy(client: Client, repo: Path) -> None:
    assert post(client, "/ingest/start", body(repo))[0] == 202
    status, answer = post(client, "/ingest/start", body(repo))
    assert (status, answer["status"], answer["code"]) == (429, "error", "BUSY")
    assert IngestRun.objects.count() == 1


def test_the_order_is_validation_then_folder_then_lock_then_busy(
    client: Client, repo: Path
) -> None:
    root = published(str(repo.parent), name="known")
    assert post(client, "/ingest/start", body(repo))[0] == 202
    lock("openai:nomic")

    def code(**changes: Any) -> str:
        return str(post(client, "/ingest/start", body(repo, **changes))[1]["code"])

    assert code(name="", path="/nowhere") == "VALIDATION"
    assert code(path=f"{repo}/nowhere") == "NOT_FOUND"
    assert code() == "MODEL_LOCKED"
    assert code(model="nomic", name="known") == "NAME_TAKEN"
    assert code(model="nomic") == "BUSY"
    assert post(client, f"/ingest/reembed/{quote(root.path, safe='')}")[1]["code"] == "BUSY"
    assert post(client, f"/ingest/remove/{quote(root.path, safe='')}")[1]["code"] == "BUSY"


def test_reembed_uses_the_stored_fields(client: Client, repo: Path) -> None:
    lock()
    published(str(repo), name="lighthouse", description="Ships")
    status, answer = post(client, f"/ingest/reembed/{quote(str(repo), safe='')}")
    assert status == 202
    run = IngestRun.objects.get(id=answer["runId"])
    assert (run.operation, run.name, run.description) == ("reembed", "lighthouse", "Ships")
    status, answer = post(client, f"/ingest/reembed/{quote(str(repo), safe='')}")
    assert (status, answer["code"]) == (429, "BUSY")


def test_a_root_without_its_folder_is_not_queued(client: Client, folder: Path) -> None:
    published(str(folder / "gone"))
    status, answer = post(client, f"/ingest/reembed/{quote(str(folder / 'gone'), safe='')}")
    assert (status, answer["code"]) == (404, "NOT_FOUND")
    assert not IngestRun.objects.exists()


NAMES = [
    "plain",
    "with space",
    "größe",
    "100%",
    "a%2Fb",
    "what?",
    "a#b",
    "a+b",
    "two\nlines",
    "日本",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spell", [lambda p: quote(p, safe=""), lambda p: quote(p).lstrip("/")])
def test_a_root_is_found_by_its_encoded_path(
    client: Client, folder: Path, name: str, spell: Callable[[str], str]
) -> None:
    path = folder / name
    path.mkdir()
    published(str(path))
    assert post(client, f"/ingest/reembed/{spell(str(path))}")[0] == 202


@pytest.mark.fault("An ingest is refused")
@pytest.mark.parametrize("verb", ["reembed", "remove"])
def test_an_unknown_root_is_404_and_the_disk_is_not_asked(
    client: Client, repo: Path, verb: str
) -> None:
    root = published(str(repo))
    published_not_yet = Root.objects.create(path="/data/first-run", name="new", model=MODEL)
    for path in (
        f"{root.path}/",
        f"{root.path}/src",
        f"{root.path}/../lighthouse",
        root.path.upper(),
        quote(root.path, safe=""),
        published_not_yet.path,
        "/",
    ):
        status, answer = post(client, f"/ingest/{verb}/{quote(path, safe='')}")
        assert (status, answer["status"], answer["code"]) == (404, "error", "NOT_FOUND"), path


@pytest.mark.fault("An ingest is refused")
@pytest.mark.parametrize(
    "run_id", ["nothing", "00000000-0000-4000-8000-000000000000", "%00", "1" * 400]
)
def test_an_unknown_run_is_404(client: Client, run_id: str) -> None:
    answer = client.get(f"/ingest/status/{run_id}")
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert answer.json()["status"] == "error"
    status, cancelled = post(client, f"/ingest/cancel/{run_id}")
    assert (status, cancelled["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("get", "/ingest/start"),
        ("post", "/ingest/roots"),
        ("get", "/ingest/reembed/%2Fdata"),
        ("delete", "/ingest/remove/%2Fdata"),
        ("post", "/ingest/dirs"),
    ],
)
def test_another_method_is_405_in_json(client: Client, method: str, address: str) -> None:
    answer = getattr(client, method)(address, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (405, "METHOD_NOT_ALLOWED")


def test_roots_are_listed_latest_first(client: Client, repo: Path) -> None:
    lock()
    moment = timezone.now().replace(microsecond=7_000)
    run_id = uuid4()
    published("/b", "older", last_ingest_at=moment.replace(year=2020))
    Root.objects.create(path="/c", name="not published", model=MODEL)
    published(
        "/a",
        "newer",
        description="",
        last_ingest_at=moment,
        last_run_id=run_id,
        last_state="error",
        last_error="Interrupted",
        files=3,
        chunks=9,
        embedded=8,
        skipped=1,
    )
    answer = client.get("/ingest/roots").json()
    assert answer["lockedModelId"] == MODEL
    assert [root["name"] for root in answer["roots"]] == ["newer", "older"]
    assert answer["roots"][0] == {
        "runId": str(run_id),
        "name": "newer",
        "description": None,
        "path": "/a",
        "model": MODEL,
        "status": "error",
        "lastIngestAt": moment.strftime("%Y-%m-%dT%H:%M:%S.007Z"),
        "counts": {"files": 3, "chunks": 9, "embedded": 8, "skipped": 1},
        "lastError": "Interrupted",
        "damage": None,
        "url": None,
    }


def test_an_empty_index_has_no_roots_and_no_lock(client: Client) -> None:
    assert client.get("/ingest/roots").json() == {"roots": [], "lockedModelId": None}


@pytest.mark.door
def test_models_are_listed_with_the_lock(client: Client) -> None:
    lock()
    answer = client.get("/ingest/models").json()
    assert answer["lockedModelId"] == MODEL
    (model,) = answer["models"]
    assert set(model) == {"id", "displayName", "contextLength", "format", "size", "filename"}
    assert (model["id"], model["contextLength"]) == (MODEL, None)
