"""The admin shows roots, runs and files, and can embed again or remove; it edits nothing."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client

from apps.core.errors import CodeinfoError, Conflict, Unavailable
from apps.embedding.static import MODEL_ID
from apps.index.models import IngestRun, Root, SourceFile
from apps.ingest import services
from apps.ingest.runs import queue, submit, sweep
from tests.support.ingested import ingest, outdate
from tests.support.parts import parts_on_disk

pytestmark = [pytest.mark.django_db, pytest.mark.door]


@pytest.mark.parametrize("model", ["root", "ingestrun", "sourcefile"])
def test_rows_can_be_found_and_seen_but_not_written(
    admin_client: Client, repo: Path, index: None, model: str
) -> None:
    ingest(repo)
    listing = admin_client.get(f"/admin/index/{model}/", {"q": "light"})
    assert listing.status_code == 200
    assert admin_client.get(f"/admin/index/{model}/add/").status_code == 403
    root = Root.objects.get()
    page = admin_client.get(f"/admin/index/root/{root.id}/change/")
    assert page.status_code == 200
    assert b'name="_save"' not in page.content


def test_pages_have_the_words_of_the_app(admin_client: Client, repo: Path, index: None) -> None:
    root = ingest(repo)
    rows = {
        "root": root,
        "ingestrun": IngestRun.objects.get(),
        "sourcefile": SourceFile.objects.all()[0],
    }
    for model, row in rows.items():
        for page in ("", f"{row.pk}/change/", f"{row.pk}/history/", f"{row.pk}/delete/"):
            html = admin_client.get(f"/admin/index/{model}/{page}").content.decode()
            texts = re.sub(r"<(script|style).*?</\1>|<[^>]*>", "|", html, flags=re.DOTALL)
            texts = texts.replace(str(repo), "")
            assert not re.search(r"(?i)\b(?:roots?|chunks?)\b", texts), (model, page)


def test_selected_roots_are_embedded_again(admin_client: Client, repo: Path, index: None) -> None:
    root = ingest(repo)
    outdate(root)
    data = {"action": "reembed", "_selected_action": str(root.id)}
    assert admin_client.post("/admin/index/root/", data).status_code == 302
    assert IngestRun.objects.get(state="queued").path == str(repo)
    queue.drain()
    root.refresh_from_db()
    assert root.generation == 2


@pytest.mark.parametrize("one", [True, False])
def test_deleting_a_root_takes_its_parts_along(
    admin_client: Client, repo: Path, index: None, one: bool
) -> None:
    root = ingest(repo)
    if one:
        answer = admin_client.post(f"/admin/index/root/{root.id}/delete/", {"post": "yes"})
    else:
        data = {"action": "delete_selected", "_selected_action": str(root.id), "post": "yes"}
        answer = admin_client.post("/admin/index/root/", data)
    assert answer.status_code == 302
    assert not Root.objects.exists()
    sweep.sweep()
    assert not parts_on_disk()


def test_staff_with_the_rights_to_roots_embed_again_and_remove(
    client: Client, repo: Path, index: None
) -> None:
    root = ingest(repo)
    keeper = User.objects.create_user("keeper", is_staff=True)
    for name in ("view_root", "change_root", "delete_root"):
        keeper.user_permissions.add(Permission.objects.get(codename=name))
    client.force_login(keeper)
    assert b'value="reembed"' in client.get("/admin/index/root/").content
    client.post(f"/admin/index/root/{root.id}/delete/", {"post": "yes"})
    assert not Root.objects.exists()


def test_nothing_is_deleted_while_a_run_waits(
    admin_client: Client, repo: Path, index: None
) -> None:
    root = ingest(repo)
    services.reembed(str(repo))
    answer = admin_client.post(f"/admin/index/root/{root.id}/delete/", {"post": "yes"})
    assert answer.status_code == 403
    assert Root.objects.filter(id=root.id).exists()


REFUSALS = [Conflict("Another ingest is queued.", code="BUSY"), Unavailable("The texts are away.")]


@pytest.mark.parametrize("error", REFUSALS, ids=["busy", "texts away"])
@pytest.mark.parametrize("verb", ["delete one", "delete_selected", "reembed"])
def test_a_refusal_is_a_message_in_the_list(
    admin_client: Client,
    repo: Path,
    index: None,
    monkeypatch: pytest.MonkeyPatch,
    error: CodeinfoError,
    verb: str,
) -> None:
    root = ingest(repo)

    def refuse(*arguments: Any) -> None:
        raise error

    monkeypatch.setattr(services, "remove", refuse)
    monkeypatch.setattr(submit, "queue_reembeds", refuse)
    if verb == "delete one":
        address, data = f"/admin/index/root/{root.id}/delete/", {"post": "yes"}
    else:
        address = "/admin/index/root/"
        data = {"action": verb, "_selected_action": str(root.id), "post": "yes"}
    answer = admin_client.post(address, data, follow=True)
    assert answer.status_code == 200
    assert [str(shown) for shown in answer.context["messages"]] == [
        f"{error.code}: {error.message}"
    ]


def test_a_selection_that_is_no_root_is_refused(admin_client: Client) -> None:
    data = {"action": "reembed", "_selected_action": "nope"}
    answer = admin_client.post("/admin/index/root/", data, follow=True)
    assert [str(shown) for shown in answer.context["messages"]] == [
        "NOT_FOUND: The selected rows are not there."
    ]


@pytest.mark.django_db(transaction=True)
def test_subscribers_see_a_removal_when_they_are_notified(
    admin_client: Client, repo: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others read the rows as soon as they are told: the removal stands in no open transaction."""
    root = ingest(repo)
    open_transaction = []
    drop = sweep.drop_root

    def drop_and_look(root: Root, **how: bool) -> None:
        drop(root, **how)
        open_transaction.append(connection.in_atomic_block)

    monkeypatch.setattr(sweep, "drop_root", drop_and_look)
    admin_client.post(f"/admin/index/root/{root.id}/delete/", {"post": "yes"})
    assert open_transaction == [False]


@pytest.mark.parametrize(
    "address",
    [
        "root/?q=light",
        f"root/?last_state__exact=completed&model__exact={MODEL_ID}",
        "ingestrun/?q=light&state__exact=completed&dry_run__exact=0",
        "sourcefile/?q=retry&language__exact=python",
        "sourcefile/?root__id__exact={root}",
    ],
)
def test_lists_can_be_searched_and_filtered(
    admin_client: Client, repo: Path, index: None, address: str
) -> None:
    root = ingest(repo)
    answer = admin_client.get(f"/admin/index/{address.format(root=root.id)}")
    assert answer.status_code == 200
    assert answer.context["cl"].result_count >= 1


def choose(client: Client, action: str, run: IngestRun) -> list[str]:
    """Run an action on a run, from the button of its page. Returns the messages."""
    page = client.get(f"/admin/index/ingestrun/{run.id}/change/").content.decode()
    assert f'value="{action}"' in page
    data = {"action": action, "_selected_action": str(run.id)}
    answer = client.post("/admin/index/ingestrun/", data, follow=True)
    return [str(message) for message in answer.context["messages"]]


def test_a_run_is_repeated_and_its_repetition_cancelled(
    admin_client: Client, repo: Path, index: None
) -> None:
    ingest(repo)
    first = IngestRun.objects.get()
    assert choose(admin_client, "again", first) == [f"Ingest of {first.name} queued"]
    again = IngestRun.objects.get(state="queued")
    assert (again.path, again.model, again.name) == (first.path, first.model, first.name)
    assert choose(admin_client, "cancel", again) == ["Cancelled: 1 of 1"]
    again.refresh_from_db()
    assert again.state == "cancelled"


def test_a_second_repetition_is_refused_in_the_list(
    admin_client: Client, repo: Path, index: None
) -> None:
    ingest(repo)
    run = IngestRun.objects.get()
    choose(admin_client, "again", run)
    assert choose(admin_client, "again", run)[0].startswith("BUSY: ")
    assert IngestRun.objects.count() == 2


def test_only_staff_with_the_right_to_change_repositories_repeats_runs(
    client: Client, repo: Path, index: None
) -> None:
    ingest(repo)
    run = IngestRun.objects.get()
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.add(Permission.objects.get(codename="view_ingestrun"))
    client.force_login(reader)
    page = client.get(f"/admin/index/ingestrun/{run.id}/change/").content
    assert b"Ingest again" not in page
    client.post("/admin/index/ingestrun/", {"action": "again", "_selected_action": str(run.id)})
    assert IngestRun.objects.count() == 1


def test_a_repository_and_its_files_lead_to_their_code(
    admin_client: Client, repo: Path, index: None
) -> None:
    root = ingest(repo)
    page = admin_client.get(f"/admin/index/root/{root.id}/change/").content.decode()
    assert f'href="/code?repo={root.name}&amp;path="' in page
    file = SourceFile.objects.get(path="src/retry.py")
    page = admin_client.get(f"/admin/index/sourcefile/{file.id}/change/").content.decode()
    assert f'href="/code?repo={root.name}&amp;path=src%2Fretry.py"' in page


def test_removing_selected_roots_needs_confirmation(
    admin_client: Client, repo: Path, index: None
) -> None:
    root = ingest(repo)
    data = {"action": "delete_selected", "_selected_action": str(root.id)}
    question = admin_client.post("/admin/index/root/", data)
    assert question.status_code == 200
    assert b"lighthouse" in question.content and b"Yes" in question.content
    assert Root.objects.filter(id=root.id).exists()
