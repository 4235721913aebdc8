"""`POST /ingest/start` with the URL of a repository: it is fetched, ingested, and searched."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.index.models import Clone, IngestRun, Root
from apps.ingest.discovery.own_data import clones_folder
from apps.ingest.remote import address, clones
from apps.ingest.runs import queue, recovery, sweep
from tests.ingest.remote.cloning import cloned, start
from tests.ingest.requests import paths, post
from tests.support.git import commit_all, git
from tests.support.git_servers import GitServer, ssh_server
from tests.support.ingested import write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]


def test_a_repository_is_fetched_and_found(client: Client, server: GitServer, index: None) -> None:
    status = cloned(client, f"{server.url}/harbour")
    assert (status["state"], status["counts"]["files"]) == ("completed", 1), status
    found = post(client, "/tools/vector-search", {"query": "moor a ship"})[1]
    assert [one["repo"] for one in found["results"]] == ["harbour"]
    root = Root.objects.get()
    assert Path(root.path).parent == clones_folder()


@pytest.mark.parametrize("ref", ["side/way", "v1", "commit"])
def test_a_branch_a_tag_and_a_commit_can_be_named(
    client: Client, server: GitServer, served: Path, index: None, ref: str
) -> None:
    wanted = git(served, "rev-parse", "HEAD").strip() if ref == "commit" else ref
    status = cloned(client, f"{server.url}/harbour@{wanted}")
    assert status["state"] == "completed", str(status)
    root = Root.objects.get()
    assert root.name == f"harbour@{wanted.replace('/', '~')}"
    assert paths() == (["quay.py", "side.py"] if ref == "side/way" else ["quay.py"])
    assert root.commit == git(served, "rev-parse", f"{wanted}^{{commit}}").strip()


def test_another_ingest_fetches_first(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    cloned(client, f"{server.url}/harbour")
    git(served, "rm", "-q", "quay.py")
    write_files(served, {"pier.py": "def pier():\n    return 1\n"})
    commit_all(served)
    root = Root.objects.get()
    status, _ = post(client, f"/ingest/reembed/{root.path}", {})
    assert status == 202
    queue.drain()
    assert paths() == ["pier.py"]
    # The address means the same repository.
    assert cloned(client, f"{server.url}/harbour")["state"] == "skipped"
    assert Root.objects.count() == 1


def test_a_rewritten_branch_is_followed(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    cloned(client, f"{server.url}/harbour@main")
    write_files(served, {"quay.py": "def other():\n    return 2\n"})
    git(served, "commit", "-qa", "--amend", "-m", "y")
    cloned(client, f"{server.url}/harbour@main")
    assert Root.objects.get().commit == git(served, "rev-parse", "HEAD").strip()


def test_a_removal_deletes_the_clone(client: Client, server: GitServer, index: None) -> None:
    cloned(client, f"{server.url}/harbour")
    root = Root.objects.get()
    assert post(client, f"/ingest/remove/{root.path}")[0] == 200
    assert not Path(root.path).exists()
    assert not Clone.objects.exists()


def test_a_dry_run_leaves_no_clone(client: Client, server: GitServer, index: None) -> None:
    status = cloned(client, f"{server.url}/harbour", dryRun=True)
    assert (status["state"], status["counts"]["files"]) == ("completed", 1)
    assert not list(clones_folder().iterdir())
    assert not Clone.objects.exists()


def test_a_clone_moves_with_the_data_folder(
    client: Client, server: GitServer, folder: Path, configure: Any, index: None
) -> None:
    """Also where a backup is restored to another place, without the clones."""
    cloned(client, f"{server.url}/harbour")
    configure(data_dir=folder / "moved")
    recovery.recover()
    root = Root.objects.get()
    assert Path(root.path).is_relative_to(folder / "moved")
    assert post(client, f"/ingest/reembed/{root.path}", {})[0] == 202
    queue.drain()
    assert paths() == ["quay.py"]
    assert cloned(client, f"{server.url}/harbour")["state"] == "skipped"
    assert Root.objects.get().id == root.id


def test_a_name_that_is_taken_gets_the_owner(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    cloned(client, f"{server.url}/harbour")
    other = served.parent / "ada"
    other.mkdir()
    git(served, "clone", "-q", "--bare", str(served), str(other / "harbour.git"))
    cloned(client, f"{server.url}/ada/harbour.git")
    assert set(Root.objects.values_list("name", flat=True)) == {"harbour", "ada/harbour"}


def test_a_repository_is_fetched_over_ssh(
    client: Client, server: GitServer, served: Path, folder: Path, index: None
) -> None:
    with ssh_server(served.parent, folder / "home") as address:
        status = cloned(client, f"{address}/harbour@side/way")
    assert status["state"] == "completed", str(status)
    assert paths() == ["quay.py", "side.py"]


def test_a_host_with_another_key_is_refused(
    client: Client, server: GitServer, served: Path, folder: Path, index: None
) -> None:
    with ssh_server(served.parent, folder / "home") as address:
        (folder / "home/.ssh/known_hosts").write_text("")
        status = cloned(client, f"{address}/harbour")
    assert (status["state"], status["errorCode"]) == ("error", "CLONE_FAILED")
    assert "known_hosts" in status["lastError"]


def test_a_local_repository_has_an_address(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    assert cloned(client, f"file://{served}@side/way")["state"] == "completed"
    assert paths() == ["quay.py", "side.py"]


def test_its_history_is_there(client: Client, server: GitServer, index: None) -> None:
    cloned(client, f"{server.url}/harbour@side/way")
    status, answer = post(client, "/tools/history", {"of": "log", "repository": "harbour@side~way"})
    assert status == 200, answer
    assert len(answer["results"]) == 2, answer


def test_a_first_fetch_that_was_killed_leaves_nothing_after_the_next_start(
    client: Client, server: GitServer, index: None
) -> None:
    run = IngestRun.objects.get(id=start(client, f"{server.url}/harbour"))
    folder = Path(run.path)
    write_files(folder, {".git/objects/pack/tmp_pack": "x"})
    IngestRun.objects.filter(id=run.id).update(state="scanning", owner="another:1:x", slot=None)
    recovery.recover()
    sweep.sweep()
    assert not folder.exists() and not Clone.objects.exists()


def test_a_request_that_is_about_to_queue_keeps_its_clone(server: GitServer, index: None) -> None:
    clones.clone_of(address.read(f"{server.url}/harbour"))
    sweep.sweep()
    assert Clone.objects.exists()
