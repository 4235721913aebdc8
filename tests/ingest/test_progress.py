"""What a run tells of itself while it goes, and what is written in the log."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from apps.embedding.static import MODEL_ID
from apps.index.endings import CANCELLED, COMPLETED
from apps.index.models import IngestRun
from apps.ingest import services
from apps.ingest.runs import queue
from apps.ingest.runs.finish import finish
from apps.ingest.runs.job import Job, RunCancelled
from apps.ingest.runs.progress import Progress
from apps.ingest.serializers import status_wire
from tests.ingest.stages import hook
from tests.support.ingested import ingest, run_ingest

pytestmark = pytest.mark.django_db


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def run() -> IngestRun:
    return IngestRun.objects.create(operation="start", path="/x", name="x", state="scanning")


def wire(run: IngestRun) -> dict[str, Any]:
    run.refresh_from_db()
    return status_wire(run)


def test_percent_and_eta_follow_the_files(run: IngestRun) -> None:
    clock = Clock()
    progress = Progress(run, Job(run.id), clock)
    progress.start(3)
    progress.set_state("embedding", "Embedding 3 files")
    status = wire(run)
    assert "percent" not in status
    assert "etaMs" not in status
    clock.now += 1
    progress.file(1, "a.py", completed=0)
    status = wire(run)
    assert (status["fileIndex"], status["fileTotal"], status["currentFile"]) == (1, 3, "a.py")
    assert status["percent"] == 33.3
    assert "etaMs" not in status
    clock.now += 1
    progress.file(2, "b.py", completed=1)
    # One file took two seconds; two are left.
    assert (wire(run)["percent"], wire(run)["etaMs"]) == (66.7, 4000)
    progress.flush()
    assert finish(run.id, COMPLETED)
    status = wire(run)
    assert (status["percent"], status["etaMs"], status["fileIndex"]) == (100.0, 0, 3)
    assert status["currentFile"] == "b.py"


def test_no_files_is_no_division(run: IngestRun) -> None:
    Progress(run, Job(run.id)).start(0)
    finish(run.id, COMPLETED)
    assert "percent" not in json.loads(json.dumps(wire(run)))


def test_the_row_is_written_at_most_four_times_a_second(run: IngestRun) -> None:
    clock = Clock()
    progress = Progress(run, Job(run.id), clock)
    progress.start(1000)
    written = set()
    for n in range(1, 1001):
        clock.now += 0.001
        progress.file(n, f"{n}.py", completed=n - 1)
        written.add(wire(run).get("fileIndex"))
    assert len(written - {None}) <= 4


def test_a_cancelled_row_stops_the_pipeline(run: IngestRun) -> None:
    job = Job(run.id)
    progress = Progress(run, job)
    IngestRun.objects.filter(id=run.id).update(cancel_requested=True)
    with pytest.raises(RunCancelled):
        progress.set_state("embedding", "Embedding 1 files")
    assert job.cancelled
    assert wire(run)["state"] == "scanning"


@pytest.mark.parametrize(("first", "then"), [(COMPLETED, CANCELLED), (CANCELLED, COMPLETED)])
def test_the_first_ending_stays(run: IngestRun, first: Any, then: Any) -> None:
    assert finish(run.id, first) is True
    assert finish(run.id, then) is False
    assert wire(run)["state"] == first.state


def test_finishing_an_unknown_run_is_no_error() -> None:
    assert finish(uuid4(), COMPLETED) is False


@pytest.mark.door
def test_the_states_and_messages_of_a_run(
    client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    states: list[tuple[str, str]] = []

    def look() -> None:
        run = IngestRun.objects.get()
        status = client.get(f"/ingest/status/{run.id}").json()
        if (status["state"], status["message"]) not in states:
            states.append((status["state"], status["message"]))

    run = services.start_run(path=str(repo), name="lighthouse", model=MODEL_ID)
    look()
    for stage in ("discovery", "chunking", "publishing"):
        hook(stage, look, monkeypatch.setattr)
    queue.drain()
    look()
    assert states == [
        ("queued", "Queued"),
        ("scanning", "Discovering files"),
        ("embedding", "Embedding 4 files"),
        ("completed", "Completed"),
    ]
    assert wire(run)["state"] == "completed"


@pytest.mark.door
def test_start_and_end_of_a_run_are_logged_with_facts(
    repo: Path, index: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "codeinfo.ingest")
    root = ingest(repo)
    services.remove(str(repo))
    logged = [(entry.getMessage(), vars(entry)["context"]) for entry in caplog.records]
    assert [message for message, _ in logged] == [
        "ingest start",
        "ingest completed",
        "ingest remove start",
        "ingest remove completed",
    ]
    facts = logged[1][1]
    assert facts["runId"] == str(root.last_run_id)
    assert (facts["path"], facts["name"], facts["state"]) == (str(repo), root.name, "completed")
    assert facts["counts"]["chunks"] == root.chunks
    assert set(facts) == {
        "automatic",
        "runId",
        "operation",
        "path",
        "root",
        "name",
        "description",
        "model",
        "state",
        "counts",
        "lastError",
    }


@pytest.mark.door
def test_a_failure_is_logged_as_one(
    folder: Path, index: None, caplog: pytest.LogCaptureFixture
) -> None:
    run_ingest(folder, "empty")
    entry = caplog.records[-1]
    assert (entry.getMessage(), entry.levelname) == ("ingest error", "WARNING")
