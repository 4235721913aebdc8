"""reingest_repository: an ordinary run of the ingest, waited for."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from apps.core.errors import Conflict, NotFound
from apps.index import queries
from apps.index.models import IngestRun, Root
from apps.ingest import services
from apps.ingest.runs import queue
from apps.mcp.reingest import REINGEST_REPOSITORY
from tests.mcp.doors.conftest import Caller
from tests.support.ingested import ingest_sample

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]


@pytest.fixture
def sample(folder: Path, transactional_db: None) -> Iterator[Path]:
    """An ingested repository named lighthouse, and nobody who takes runs from the queue."""
    ingest_sample(folder)
    yield folder
    IngestRun.objects.live().update(state="cancelled", slot=None)


async def drained(caller: Caller) -> None:
    """Do the queued run once the caller waits for it."""
    await caller.hears("Queued")
    await asyncio.to_thread(queue.drain)


async def reingest(caller: Caller, repository: str = "lighthouse") -> dict[str, object]:
    pending = asyncio.create_task(caller.call(REINGEST_REPOSITORY, repository=repository))
    await drained(caller)
    answer = await pending
    jsonschema.validate(answer, REINGEST_REPOSITORY.output_schema)
    return answer


async def test_the_answer_comes_when_the_index_is_up_to_date(sample: Path, caller: Caller) -> None:
    await asyncio.to_thread((sample / "new.py").write_text, "def lamp():\n    return 'on'\n")
    answer = await reingest(caller)
    run = await IngestRun.objects.aget(operation="reembed")
    assert (answer["runId"], answer["state"]) == (str(run.id), "completed")
    assert answer["counts"] == {"files": 1, "chunks": 1, "embedded": 1, "skipped": 1}
    assert "lastError" not in answer
    files = queries.live_files(await Root.objects.aget())
    assert "new.py" in [file.path async for file in files]


async def test_a_failed_run_is_reported_with_its_error(
    sample: Path, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise Conflict("The disk is full.")

    monkeypatch.setattr("apps.ingest.runs.pipeline.ingest", broken)
    answer = await reingest(caller)
    assert (answer["state"], answer["lastError"]) == ("error", "The disk is full.")


async def test_an_unknown_repository_is_refused_with_the_known_ids(
    sample: Path, caller: Caller
) -> None:
    with pytest.raises(NotFound, match="Known ids: 'lighthouse'") as unknown:
        await caller.call(REINGEST_REPOSITORY, repository="lanterns")
    assert unknown.value.code == "REPO_NOT_FOUND"


async def test_a_missing_folder_is_reported(sample: Path, caller: Caller) -> None:
    await asyncio.to_thread(sample.rename, sample.with_name("gone"))
    with pytest.raises(NotFound):
        await caller.call(REINGEST_REPOSITORY, repository="lighthouse")


async def test_one_ingest_at_a_time_and_the_refusal_names_it(sample: Path, caller: Caller) -> None:
    await asyncio.to_thread(services.reembed, str(sample))
    with pytest.raises(Conflict, match="ingest of 'lighthouse' is queued or under way") as busy:
        await caller.call(REINGEST_REPOSITORY, repository="lighthouse")
    assert busy.value.code == "BUSY"


async def test_a_disconnect_cancels_the_run(sample: Path, caller: Caller) -> None:
    pending = asyncio.create_task(caller.call(REINGEST_REPOSITORY, repository="lighthouse"))
    await caller.hears("Queued")
    pending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pending
    run = await IngestRun.objects.aget(operation="reembed")
    assert run.state == "cancelled"
