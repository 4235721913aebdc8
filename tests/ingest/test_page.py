"""The ingest page at its door: what it shows for which rows, and how its forms answer."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from channels.testing import WebsocketCommunicator
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.embedding.static import MODEL_ID
from apps.index.changes import run_changed
from apps.index.models import IndexLock, IngestRun, Root, SourceFile
from apps.index.queries import listed_by
from apps.ingest import panels, skips
from apps.ingest.consumers import IngestPageConsumer
from tests.ingest.pages import HTMX, make_root, make_run

pytestmark = pytest.mark.django_db


def skip(run: IngestRun, path: str, reason: str, root: Root | None = None) -> SourceFile:
    return SourceFile.objects.create(
        run=run, root=root, path=path, skip_reason=reason, since=1, size=1400
    )


def page(client: Client) -> str:
    response = client.get("/ingest")
    assert response.status_code == 200
    return response.content.decode()


def test_the_page_of_an_empty_index_explains_how_to_start(client: Client) -> None:
    html = page(client)
    assert "No embedded folders yet. Start an ingest to see entries here." in html
    assert "the embedding model will lock to that choice." in html
    assert "<h3>Choose a folder of source code</h3>" in html
    assert "locks this choice" not in html


def test_paths_of_a_container_are_shown_as_the_host_names_them(
    client: Client, configure: Callable[..., None]
) -> None:
    configure(host_ingest_dir="/home/me/src")
    root = make_root(path="/data/httpx")
    make_run(path="/data/redis", state="completed")
    html = page(client)
    assert "/home/me/src/httpx" in html and "/home/me/src/redis" in html
    assert "/data/" not in html
    details = client.get(f"/ui/ingest/root/{root.id}").content.decode()
    assert "/home/me/src/httpx" in details and "/data/httpx" in details


@pytest.mark.parametrize(("count", "shown"), [(1, "1 file, with"), (2, "2 files, with")])
def test_the_details_count_what_was_skipped(client: Client, count: int, shown: str) -> None:
    root = make_root(path="/code/httpx", skipped=count)
    assert f">{shown} reasons" in client.get(f"/ui/ingest/root/{root.id}").content.decode()


def test_a_form_with_an_error_names_the_model_as_before(client: Client) -> None:
    html = client.post("/ui/ingest/start", {"path": ""}, headers=HTMX).content.decode()
    assert f">{MODEL_ID} (built in)</option>" in html


def test_the_model_lock_is_shown_and_disables_the_select(client: Client) -> None:
    IndexLock.objects.create(model="openai:embed-9", dimension=9)
    html = page(client)
    assert "Embedding model locked to openai:embed-9" in html
    assert html.count("odel locked to openai:embed-9") == 1
    assert '<select class="select" id="model" name="model" disabled' in html


@pytest.mark.parametrize(
    ("message", "error", "shown"),
    [
        ("No files in /code", "No files in /code. Left out: 3", "No files in /code. Left out: 3."),
        ("Failed", "Chroma is away.", "Chroma is away."),
        ("Stopped", "The disk is full", "Stopped. The disk is full."),
    ],
)
def test_why_a_run_failed_is_said_once(
    client: Client, message: str, error: str, shown: str
) -> None:
    run = {"state": "error", "finished_at": timezone.now(), "message": message}
    make_run(path="/code/redis", last_error=error, **run)
    assert f"<strong>{shown}</strong>" in page(client)
    assert page(client).count(error) == 1


def test_a_run_shows_how_far_it_is(client: Client) -> None:
    make_run(
        state="embedding",
        started_at=timezone.now(),
        files=812,
        chunks=14206,
        embedded=14080,
        skipped=37,
        file_index=812,
        file_total=2304,
        current_file="src/cluster.c",
        eta_ms=134_000,
    )
    html = page(client)
    for text in ("Active ingest", "35 %", "812 / 2,304 files", "ETA 00:02:14", "src/cluster.c"):
        assert text in html
    assert "2,341 found, 37 skipped" in html
    assert "14,080 of 14,206 passages have a vector" in html
    assert "One run at a time. redis is active." in html


def test_unchanged_files_are_counted_separately(client: Client) -> None:
    run = make_run(state="embedding", files=1, file_total=1, skipped=37, unchanged=2304)
    assert "2,342 found, 37 skipped, 2,304 unchanged" in page(client)
    IngestRun.objects.filter(id=run.id).update(state="completed", finished_at=timezone.now())
    assert "2,304 files unchanged since the last ingest" in page(client)


def test_before_the_first_file_the_page_shows_a_placeholder(client: Client) -> None:
    make_run(state="scanning", message="Discovering files")
    html = page(client)
    assert "Pending file info" in html
    assert "Discovering files" in html


def test_a_failed_run_keeps_its_reason_in_view(client: Client) -> None:
    make_run(state="error", message="Failed", last_error="fatal: <bad> object HEAD")
    html = page(client)
    assert "Last ingest" in html
    assert "fatal: &lt;bad&gt; object HEAD" in html


def test_a_run_that_git_stopped_offers_to_do_without(client: Client, folder: Path) -> None:
    form_data = {"path": str(folder), "description": "Ships", "dry_run": True}
    failed = {"state": "error", "last_error": "is bare", "error_code": "GIT_FAILED"}
    run = make_run(**failed, **form_data)
    html = page(client)
    assert "Ingest as a plain folder" in html
    address = f"/ui/ingest/plain/{run.id}"
    assert f'formaction="{address}"' in html
    assert client.post(address, headers=HTMX).status_code == 200
    next_run = IngestRun.objects.get(state="queued")
    assert (next_run.path, next_run.name, next_run.model) == (str(folder), run.name, run.model)
    assert (next_run.description, next_run.dry_run, next_run.plain_folder) == ("Ships", True, True)
    # While it waits nothing else is offered, and asking again is refused.
    assert "Ingest as a plain folder" not in page(client)
    refused = client.post(address, headers=HTMX)
    assert (refused.status_code, "BUSY" in refused["HX-Trigger"]) == (422, True)


def test_any_other_failure_offers_no_such_thing(client: Client) -> None:
    make_run(state="error", message="Failed", last_error="No space left on device")
    assert "Ingest as a plain folder" not in page(client)


def test_a_removal_is_not_taken_for_the_last_ingest() -> None:
    ingested = make_run(state="completed", finished_at=timezone.now())
    make_run(operation="remove", state="completed", finished_at=timezone.now())
    assert panels.context()["panel"].run == ingested


def test_progress_is_spoken_by_tenths() -> None:
    run = make_run(state="embedding", file_index=29, file_total=100)
    assert panels.RunPanel(run).announcement == "redis: 20 percent"


def test_names_cannot_become_markup(client: Client) -> None:
    make_root("<img src=x onerror=alert(1)>", path="/code/'\"><script>alert(1)</script>")
    html = page(client)
    assert "<img src=x" not in html
    assert "<script>alert" not in html


@pytest.mark.parametrize(
    ("missing", "text"),
    [("path", "Path is required"), ("model", "Select a model")],
)
def test_a_missing_field_is_named(client: Client, missing: str, text: str) -> None:
    form = {"path": "/code", "name": "code", "model": MODEL_ID}
    response = client.post("/ui/ingest/start", form | {missing: ""}, headers=HTMX)
    assert response.status_code == 422
    assert text in response.content.decode()
    assert IngestRun.objects.count() == 0


def test_without_a_name_a_repository_takes_that_of_its_folder(client: Client, folder: Path) -> None:
    form = {"path": f"{folder}/", "name": " ", "model": MODEL_ID}
    assert client.post("/ui/ingest/start", form, headers=HTMX).status_code == 200
    assert IngestRun.objects.get().name == folder.name


def test_a_tilde_is_the_home_folder(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "src").mkdir()
    monkeypatch.setenv("HOME", str(folder))
    form = {"path": "~/src", "name": "", "model": MODEL_ID}
    assert client.post("/ui/ingest/start", form, headers=HTMX).status_code == 200
    run = IngestRun.objects.get()
    assert (run.path, run.name) == (str(folder / "src"), "src")


def test_an_error_is_shown_at_its_field_and_the_input_stays(client: Client, folder: Path) -> None:
    make_root("taken", path="/elsewhere")
    form = {"path": str(folder), "name": "taken", "model": MODEL_ID}
    response = client.post("/ui/ingest/start", form, headers=HTMX)
    assert response.status_code == 422
    assert response.context["form"].errors.keys() == {"name"}
    assert f'value="{folder}"' in response.content.decode()


def test_starting_works_without_scripts(client: Client, folder: Path) -> None:
    form = {"path": str(folder), "name": "plain", "model": MODEL_ID}
    response = client.post("/ui/ingest/start", form)
    assert (response.status_code, response["Location"]) == (302, "/ingest")
    assert IngestRun.objects.get().name == "plain"


def test_a_locked_model_need_not_be_sent(client: Client, folder: Path) -> None:
    IndexLock.objects.create(model=MODEL_ID, dimension=256)
    response = client.post(
        "/ui/ingest/start", {"path": str(folder), "name": "locked"}, headers=HTMX
    )
    assert response.status_code == 200
    assert IngestRun.objects.get().model == MODEL_ID


def test_posts_without_the_pages_token_are_refused(folder: Path) -> None:
    strict = Client(enforce_csrf_checks=True)
    for path in ("start", "reembed", "remove", "cancel/8a1c9b1e-0000-4000-8000-000000000000"):
        response = strict.post(f"/ui/ingest/{path}", {"path": str(folder), "name": "forged"})
        assert response.status_code == 403, path
    assert IngestRun.objects.count() == 0


def test_a_waiting_run_is_cancelled_at_once(client: Client) -> None:
    run = make_run(slot="door")
    response = client.post(f"/ui/ingest/cancel/{run.id}", headers=HTMX)
    assert json.loads(response["HX-Trigger"])["toast"]["text"] == "Ingest cancelled"
    assert 'id="active-run"' in response.content.decode()
    run.refresh_from_db()
    assert run.state == "cancelled"


@pytest.mark.parametrize(
    ("state", "announced"),
    [
        ("cancelled", "Ingest cancelled"),
        ("completed", "The ingest had ended before"),
        ("embedding", "Cancelling. The run stops after its current step."),
    ],
)
def test_a_pending_cancel_is_shown_only_while_the_run_is_in_progress(
    client: Client, monkeypatch: pytest.MonkeyPatch, state: str, announced: str
) -> None:
    run = make_run(state=state)
    monkeypatch.setattr("apps.ingest.services.cancel", lambda run_id: "pending")
    response = client.post(f"/ui/ingest/cancel/{run.id}", headers=HTMX)
    assert json.loads(response["HX-Trigger"])["toast"]["text"] == announced


def test_an_action_on_a_removed_root_is_refused(client: Client) -> None:
    for path in ("reembed", "remove"):
        response = client.post(f"/ui/ingest/{path}", {"root": "gone"}, headers=HTMX)
        assert response.status_code == 422, path
        toast = json.loads(response["HX-Trigger"])["toast"]
        assert toast["error"] is True
        assert toast["text"].startswith("NOT_FOUND: ")


def test_a_busy_index_refuses_a_removal(client: Client) -> None:
    root = make_root()
    make_run(slot="door")
    response = client.post("/ui/ingest/remove", {"root": str(root.id)}, headers=HTMX)
    assert json.loads(response["HX-Trigger"])["toast"]["text"].startswith("BUSY: ")
    assert Root.objects.filter(id=root.id).exists()


def test_the_skip_list_counts_by_kind_and_filters() -> None:
    run = make_run()
    for path, reason in (
        ("a.bin", "Binary"),
        ("b.bin", "Binary"),
        ("big.py", "Too large: over 1 MB"),
        ("huge.py", "Too large: over 2 MB"),
        ("x.bin", "Binary"),
        ("ok.py", ""),
    ):
        skip(run, path, reason)
    everything = skips.page(listed_by(run))
    assert everything.reasons == (("Binary", 3), ("Too large", 2))
    assert everything.total == 5
    large = skips.page(listed_by(run), "Too large")
    assert [file.path for file in large.files] == ["big.py", "huge.py"]
    assert large.next_page is None


def test_the_skip_list_has_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skips, "PAGE_SIZE", 2)
    run = make_run()
    for number in range(5):
        skip(run, f"{number}.bin", "Binary")
    pages = [skips.page(listed_by(run), number=number) for number in (1, 2, 3)]
    assert [len(each.files) for each in pages] == [2, 2, 1]
    assert [each.next_page for each in pages] == [2, 3, None]


@pytest.mark.parametrize(
    ("url", "rows"),
    [
        ("/ingest", 0),
        ("/ingest/roots", 0),
        ("/ui/ingest/parts", 0),
        ("/ui/ingest/root/{root}", 0),
        ("/ui/ingest/skipped?root={root}", skips.PAGE_SIZE),
        ("/ui/ingest/skipped?run={run}&page=50", skips.PAGE_SIZE),
        ("/ui/ingest/skipped?run={run}&page=51", 0),
        ("/ui/ingest/skipped?root={root}&reason=Too%20large", skips.PAGE_SIZE),
    ],
)
def test_lists_send_as_much_with_10_000_skipped_files_as_with_few(
    client: Client, url: str, rows: int
) -> None:
    few, many = (_with_skipped(count, name) for count, name in ((3, "few"), (10_000, "many")))
    queries = []
    for root, run in (few, many):
        address = url.format(root=root.id, run=run.id)
        client.get(address)
        with CaptureQueriesContext(connection) as asked:
            html = client.get(address).content.decode()
        queries.append(len(asked))
    assert queries[0] == queries[1] < 17  # some of them only if the folder has unknown parts
    assert html.count(".bin") == rows
    assert len(html) < 40_000 + 300 * rows


def _with_skipped(count: int, name: str) -> tuple[Root, IngestRun]:
    run = make_run(path=f"/code/{name}", state="completed", skipped=count)
    root = make_root(name, skipped=count, last_run_id=run.id)
    reasons = ("Binary", "Too large: over 1 MB")
    SourceFile.objects.bulk_create(
        SourceFile(run=run, root=root, path=f"{n}.bin", skip_reason=reasons[n % 2], since=1)
        for n in range(count)
    )
    return root, run


def test_the_skip_list_of_a_root_has_only_live_files(client: Client) -> None:
    root, run = make_root(), make_run()
    skip(run, "live.bin", "Binary", root)
    SourceFile.objects.filter(id=skip(run, "old.bin", "Binary", root).id).update(until=1)
    html = client.get(f"/ui/ingest/skipped?root={root.id}").content.decode()
    assert "live.bin" in html
    assert "old.bin" not in html


def test_the_csv_is_complete_and_harmless_to_spreadsheets(client: Client) -> None:
    run = make_run()
    skip(run, '=cmd|"x".bin', "Binary")
    skip(run, "a,b.bin", "Too large: over 1 MB")
    response = client.get(f"/ui/ingest/skipped.csv?run={run.id}")
    assert response["Content-Disposition"] == 'attachment; filename="skipped-redis.csv"'
    text = response.getvalue().decode()
    assert list(csv.reader(io.StringIO(text))) == [
        ["path", "reason", "bytes"],
        ['\'=cmd|"x".bin', "Binary", "1400"],
        ["a,b.bin", "Too large: over 1 MB", "1400"],
    ]


@pytest.mark.parametrize("query", ["root=nonsense", "run=nonsense", ""])
def test_a_skip_list_of_nothing_known_is_not_found(client: Client, query: str) -> None:
    assert client.get(f"/ui/ingest/skipped?{query}").status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_the_socket_sends_all_first_and_then_what_changed() -> None:
    socket = WebsocketCommunicator(IngestPageConsumer.as_asgi(), "/ws/ui/ingest?view=page")
    connected, _ = await socket.connect()
    assert connected
    first = await socket.receive_from()
    for name in ("active-run", "roots", "roots-count", "start-control", "model-lock", "foot-run"):
        assert f'id="{name}"' in first
    run = await IngestRun.objects.acreate(
        operation="start", path="/code/redis", name="redis", model="m", slot="door"
    )
    run_changed(run.id)
    second = await socket.receive_from()
    assert "redis" in second
    assert 'id="roots"' not in second
    # A page that has shown the answer to an action, which may have come late, asks for all again.
    await socket.send_to(text_data="all")
    third = await socket.receive_from()
    assert "redis" in third and 'id="roots"' in third
    await socket.disconnect()


async def test_an_unknown_view_is_refused() -> None:
    socket = WebsocketCommunicator(IngestPageConsumer.as_asgi(), "/ws/ui/ingest?view=all")
    connected, code = await socket.connect()
    assert (connected, code) == (False, 4404)


def test_a_cancelled_run_says_that_nothing_was_changed_and_is_repeated(
    client: Client, repo: Path
) -> None:
    run = make_run(state="cancelled", message="Cancelled", path=str(repo), name="lighthouse")
    html = page(client)
    assert "Nothing was changed." in html
    assert f'formaction="/ui/ingest/repeat/{run.id}"' in html
    assert client.post(f"/ui/ingest/repeat/{run.id}", headers=HTMX).status_code == 200
    again = IngestRun.objects.get(state="queued")
    assert (again.path, again.name, again.model) == (run.path, run.name, run.model)
