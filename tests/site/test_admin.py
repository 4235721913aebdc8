"""The doors of the admin: who may come in, and what no click can do."""

import re
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from apps.conversations.models import Conversation, Turn
from apps.embedding.static import MODEL_ID
from apps.index.models import IngestRun, Root, SourceFile
from tests.support.forks import HOME

pytestmark = pytest.mark.django_db

MODELS = [
    *("index/root", "index/ingestrun", "index/sourcefile"),
    *("conversations/conversation", "conversations/turn", "conversations/share"),
]


@pytest.fixture
def root() -> Root:
    return Root.objects.create(name="repo", path="/src/repo", model=MODEL_ID)


@pytest.mark.parametrize("path", ["", *(f"{model}/" for model in MODELS)])
def test_without_a_login_every_page_leads_to_it(client: Client, path: str) -> None:
    answer = client.get(f"/admin/{path}")
    assert answer.status_code == 302
    assert answer["Location"] == f"/admin/login/?next=/admin/{path}"


@pytest.mark.parametrize("path", ["", *(f"{model}/" for model in MODELS)])
def test_a_user_who_is_no_staff_is_not_let_in(client: Client, path: str) -> None:
    client.force_login(User.objects.create_user("reader"))
    assert client.get(f"/admin/{path}").status_code == 302


@pytest.mark.parametrize("model", MODELS)
def test_staff_without_rights_see_nothing(client: Client, model: str) -> None:
    client.force_login(User.objects.create_user("clerk", is_staff=True))
    assert client.get(f"/admin/{model}/").status_code == 403


@pytest.mark.parametrize("model", MODELS)
def test_an_administrator_lists_every_table_and_adds_to_none(
    admin_client: Client, model: str
) -> None:
    assert admin_client.get(f"/admin/{model}/", {"q": "x"}).status_code == 200
    assert admin_client.get(f"/admin/{model}/add/").status_code == 403
    assert admin_client.post(f"/admin/{model}/add/", {"name": "x"}).status_code == 403


@pytest.mark.fault("A page of another site")
def test_a_post_needs_its_token(admin_user: User, root: Root) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(admin_user)
    data = {"action": "reembed", "_selected_action": str(root.id)}
    assert browser.post("/admin/index/root/", data).status_code == 403
    assert not IngestRun.objects.exists()


@pytest.mark.parametrize("model", ["index/ingestrun", "index/sourcefile"])
def test_nothing_is_deleted_that_only_an_ingest_writes(admin_client: Client, model: str) -> None:
    run = IngestRun.objects.create(operation="start", path="/src/repo", name="repo", model="m")
    data = {"action": "delete_selected", "_selected_action": str(run.pk), "post": "yes"}
    admin_client.post(f"/admin/{model}/", data)
    assert IngestRun.objects.filter(pk=run.pk).exists()


@pytest.mark.parametrize("page", ["password_change", "password_change/done"])
def test_the_pages_of_the_password_have_the_head_of_the_others(
    admin_client: Client, page: str
) -> None:
    html = admin_client.get(f"/admin/{page}/").content.decode()
    assert "Open codeinfo" in html and "theme-toggle" not in html


@pytest.mark.parametrize("model", ["root", "ingestrun", "sourcefile"])
def test_passages_are_called_passages(admin_client: Client, root: Root, model: str) -> None:
    run = IngestRun.objects.create(operation="start", path="/src/repo", name="repo", model="m")
    SourceFile.objects.insert([{"root_id": root.id, "run_id": run.id, "path": "a.py", "since": 1}])
    html = admin_client.get(f"/admin/index/{model}/").content.decode()
    assert "Passages" in html and "Chunks" not in html


def test_a_change_of_a_root_is_refused(admin_client: Client, root: Root) -> None:
    answer = admin_client.post(f"/admin/index/root/{root.id}/change/", {"name": "other"})
    assert answer.status_code == 403
    root.refresh_from_db()
    assert root.name == "repo"


def test_a_conversation_that_is_not_archived_is_deleted_only_after_confirmation(
    admin_client: Client,
) -> None:
    Conversation.objects.create(id="c1", provider="builtin", model="search")
    data = {"action": "delete_selected", "_selected_action": "c1"}
    page = admin_client.post("/admin/conversations/conversation/", data)
    assert page.status_code == 200 and b"Are you sure" in page.content
    assert Conversation.objects.filter(id="c1").exists()


@pytest.mark.parametrize("action", ["archive", "restore", "delete_selected"])
def test_an_action_on_a_deleted_object_changes_nothing(admin_client: Client, action: str) -> None:
    Conversation.objects.create(id="c1", provider="builtin", model="search")
    data = {"action": action, "_selected_action": "gone", "post": "yes"}
    assert admin_client.post("/admin/conversations/conversation/", data).status_code in (200, 302)
    row = Conversation.objects.get()
    assert (row.pk, row.archived_at) == ("c1", None)


@pytest.fixture
def week(root: Root) -> None:
    """An answer and a run that failed today, and the same of last month."""
    for days, title in ((0, "Fresh"), (30, "Stale")):
        at = timezone.now() - timedelta(days=days)
        row = Conversation.objects.create(
            id=title, provider="openai", model="m", title=title, last_message_at=at
        )
        Turn.objects.create(
            conversation=row,
            role="assistant",
            status="failed",
            created_at=at,
            usage={"totalTokens": 4_321},
            error={"code": "AWAY", "message": f"{title} engine fell over"},
        )
        run = IngestRun.objects.create(
            operation="start", path="/src/repo", name=f"{title} run", model="m", state="error"
        )
        IngestRun.objects.filter(pk=run.pk).update(queued_at=at)


def test_the_start_page_tells_of_this_week(admin_client: Client, week: None) -> None:
    page = admin_client.get("/admin/").content.decode()
    assert "<dt>Model tokens</dt><dd>4,321</dd>" in page
    assert "<dt>Failed</dt><dd>1</dd>" in page
    assert "<dt>Ingests failed</dt><dd>1</dd>" in page
    assert "Fresh engine fell over" in page and "Fresh run" in page
    assert "Stale" not in page


def test_the_start_page_tells_staff_only_of_the_tables_that_they_may_see(
    client: Client, week: None
) -> None:
    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_ingestrun"))
    client.force_login(clerk)
    page = client.get("/admin/").content.decode()
    assert "Ingests failed" in page
    assert "Model tokens" not in page and "Fresh engine" not in page


def test_its_stylesheet_names_columns_that_there_are() -> None:
    models = filter(admin.site.is_registered, apps.get_models())
    lists = (admin.site.get_model_admin(model).list_display for model in models)
    columns = {str(name) for names in lists for name in names}
    rules = re.findall(r"^[^{]*\btd\b[^{]*", (HOME / "static/css/admin.css").read_text(), re.M)
    styled = {name for rule in rules for name in re.findall(r"\.field-(\w+)", rule)}
    assert styled and styled <= columns, styled - columns
