"""`POST /hooks/git/<repository id>`: a push has the repository fetched again."""

import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from apps.core.security.access import MAX_HOOK
from apps.core.security.rate_limits import HOOK_RATE
from apps.index.models import Clone, IngestRun, Root
from apps.ingest import hooks
from apps.ingest.runs import queue, submit
from codeinfo.celery import app
from tests.ingest.brokers import broker
from tests.ingest.remote.cloning import cloned
from tests.ingest.requests import paths
from tests.support.git import commit_all, git
from tests.support.git_servers import GitServer
from tests.support.ingested import write_files
from tests.support.waiting import PATIENCE

__all__ = ["broker"]

pytestmark = [pytest.mark.django_db, pytest.mark.door]

MAIN = json.dumps({"ref": "refs/heads/main", "repository": {"clone_url": "https://evil.example"}})


@pytest.fixture
def clone(client: Client, server: GitServer, index: None) -> Clone:
    cloned(client, f"{server.url}/harbour@main")
    return Clone.objects.get()


def signature(body: str, secret: str) -> str:
    return hmac.new(secret.encode(), body.encode(), sha256).hexdigest()


def github(body: str, secret: str) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={signature(body, secret)}"}


def gitea(body: str, secret: str) -> dict[str, str]:
    return {"X-Gitea-Signature": signature(body, secret)}


def gitlab(body: str, secret: str) -> dict[str, str]:
    return {"X-Gitlab-Token": secret}


Signed = Callable[[str, str], dict[str, str]]
each_form = pytest.mark.parametrize("signed", [github, gitea, gitlab])


def push(client: Client, clone: Clone, headers: dict[str, str], body: str = MAIN) -> Any:
    address = f"/hooks/git/{clone.id}"
    return client.post(address, body, content_type="application/json", headers=headers)


@each_form
def test_a_push_is_fetched(client: Client, clone: Clone, served: Path, signed: Signed) -> None:
    write_files(served, {"pier.py": "def pier():\n    return 1\n"})
    commit_all(served)
    answer = push(client, clone, signed(MAIN, hooks.secret_of(clone.id)))
    assert (answer.status_code, answer.json()) == (202, {"status": "ok", "queued": True})
    queue.drain()
    assert paths() == ["pier.py", "quay.py"]
    assert Clone.objects.get().url == clone.url


def test_the_page_shows_staff_what_a_server_must_send(client: Client, clone: Clone) -> None:
    path = f"/ui/ingest/root/{Root.objects.get().id}"
    answer = client.get(path, headers={"Accept-Encoding": "gzip"})
    # Not compressed, so that its length tells nothing of the secret.
    html = answer.content.decode()
    assert f"/hooks/git/{clone.id}" in html
    assert hooks.secret_of(clone.id) in html
    assert "no-store" in answer["Cache-Control"] and not answer.has_header("Content-Encoding")


def test_the_page_shows_others_no_secret(client: Client, clone: Clone, configure: Any) -> None:
    configure(require_login=True)
    client.force_login(User.objects.create_user("ada", password="x"))
    html = client.get(f"/ui/ingest/root/{Root.objects.get().id}").content.decode()
    assert clone.url in html
    assert hooks.secret_of(clone.id) not in html


@each_form
@pytest.mark.parametrize("secret", ["", "x", "0" * 64])
def test_a_forged_push_is_refused(
    client: Client, clone: Clone, signed: Signed, secret: str
) -> None:
    answer = push(client, clone, signed(MAIN, secret))
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
    assert not IngestRun.objects.live().exists()


def test_a_push_without_a_signature_or_for_another_text_is_refused(
    client: Client, clone: Clone
) -> None:
    secret = hooks.secret_of(clone.id)
    weak = {
        "X-Hub-Signature": "sha1=" + hmac.new(secret.encode(), MAIN.encode(), "sha1").hexdigest()
    }
    for headers in ({}, weak, github("{}", secret), {"X-Gitlab-Token": "é"}):
        assert push(client, clone, headers).status_code == 401


def test_a_login_is_no_signature(client: Client, clone: Clone, configure: Any) -> None:
    """Nor is one needed where others log in."""
    configure(require_login=True)
    assert push(client, clone, {}).status_code == 401
    answer = push(client, clone, github(MAIN, hooks.secret_of(clone.id)))
    assert answer.status_code == 202


def test_an_unknown_repository_is_told_by_nothing(client: Client, clone: Clone) -> None:
    unknown = Clone(id="00000000-0000-4000-8000-000000000000")
    answer = push(client, unknown, {})
    assert answer.content == push(client, clone, {}).content


@pytest.mark.parametrize(
    "event",
    [{"ref": "refs/heads/other"}, {"zen": "x"}, {"ref": 5}, {"ref": None}, [], "refs/heads/main"],
)
def test_another_event_queues_nothing(client: Client, clone: Clone, event: object) -> None:
    body = json.dumps(event)
    answer = push(client, clone, github(body, hooks.secret_of(clone.id)), body)
    assert (answer.status_code, answer.json()["queued"]) == (200, False)


def test_a_push_that_is_no_json_is_an_error(client: Client, clone: Clone) -> None:
    for body in ("", "payload=%7B%7D", "[" * 100_000):
        answer = push(client, clone, github(body, hooks.secret_of(clone.id)), body)
        assert answer.status_code == 400, body[:10]


def test_pushes_during_a_run_wait_behind_it_once(client: Client, clone: Clone) -> None:
    headers = github(MAIN, hooks.secret_of(clone.id))
    queued = [push(client, clone, headers).json()["queued"] for _ in range(4)]
    assert queued == [True, True, False, False]
    assert IngestRun.objects.live().count() == 2


def test_a_large_push_is_refused(client: Client, clone: Clone) -> None:
    body = " " * (MAX_HOOK + 1)
    answer = push(client, clone, github(body, hooks.secret_of(clone.id)), body)
    assert (answer.status_code, answer.json()["code"]) == (413, "PAYLOAD_TOO_LARGE")
    body = MAIN.ljust(MAX_HOOK)
    assert push(client, clone, github(body, hooks.secret_of(clone.id)), body).status_code == 202


def test_pushes_have_a_rate_of_their_own(client: Client, clone: Clone, configure: Any) -> None:
    configure(require_login=True, api_rate=1)
    cache.clear()
    # A new minute may begin meanwhile.
    answers = [push(client, clone, {}).status_code for _ in range(2 * HOOK_RATE + 1)]
    assert set(answers) == {401, 429}
    assert answers.index(429) >= HOOK_RATE
    cache.clear()


def test_only_a_post_is_a_push(client: Client, clone: Clone) -> None:
    assert client.get(f"/hooks/git/{clone.id}").status_code == 405
    assert client.post("/hooks/git/x").status_code == 404


def test_a_clone_is_fetched_again_after_some_hours(
    client: Client, clone: Clone, served: Path, configure: Any
) -> None:
    write_files(served, {"pier.py": "def pier():\n    return 1\n"})
    commit_all(served)
    submit.queue_due_fetches()
    configure(clone_hours=2)
    submit.queue_due_fetches()
    assert not IngestRun.objects.live().exists()
    Clone.objects.update(tried_at=timezone.now() - timedelta(hours=3))
    submit.queue_due_fetches()
    queue.drain()
    assert paths() == ["pier.py", "quay.py"]
    submit.queue_due_fetches()
    assert not IngestRun.objects.live().exists()


@pytest.mark.django_db(transaction=True)
def test_a_worker_of_celery_fetches_after_a_push_and_after_some_hours(
    client: Client, clone: Clone, served: Path, configure: Any, broker: None
) -> None:
    """This process only queues; `look` of the schedule finds what is due."""
    write_files(served, {"pier.py": "def pier():\n    return 1\n"})
    commit_all(served)
    assert push(client, clone, github(MAIN, hooks.secret_of(clone.id))).status_code == 202
    run = IngestRun.objects.live().get()
    assert run.state == "queued"
    with start_worker(app, pool="solo", perform_ping_check=False):
        assert queue.stop_run(run.id, timeout=PATIENCE)
    assert paths() == ["pier.py", "quay.py"]
    git(served, "rm", "-q", "pier.py")
    git(served, "commit", "-qm", "y")
    configure(clone_hours=2)
    Clone.objects.update(tried_at=timezone.now() - timedelta(hours=3))
    app.tasks[app.conf.beat_schedule["look"]["task"]]()
    assert paths() == ["quay.py"]
