"""Folders and files that go, or cannot be read, between two runs or in the middle of one."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.index import queries
from apps.index.models import IngestRun, Root
from apps.index.root_directory import Unreadable, read_file
from apps.ingest.discovery import discovery
from apps.ingest.runs import batches, queue
from tests.ingest.stages import Nth, hook
from tests.support.git import git
from tests.support.ingested import files_of, ingest, ingest_alone, outdate, run_ingest, write_files
from tests.support.parts import chunk_ids, ids_of_rows

pytestmark = [pytest.mark.django_db, pytest.mark.door]

Contents = Callable[[Root], dict[str, str]]


def many(count: int, word: str = "first") -> dict[str, str]:
    return {f"pkg{n % 4}/f{n}.py": f"def f{n}():\n    return '{word} {n}'\n" for n in range(count)}


def status_of(client: Client, run: IngestRun) -> dict[str, Any]:
    return dict(client.get(f"/ingest/status/{run.id}").json())


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None]) -> None:
    """Files are read and embedded four at a time."""
    configure(ingest_flush_every=1)
    monkeypatch.setattr(batches, "READ_AT_ONCE", 4)
    monkeypatch.setattr(batches, "ROWS_PER_WRITE", 1)


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.MonkeyPatch]:
    """refuse(errno, "name", …): these files and folders cannot be opened. A stand-in for the
    kernel, since root may read everything."""
    real = os.open

    def refuse_some(number: int, *names: str) -> pytest.MonkeyPatch:
        def refuse_open(path: Any, *arguments: Any, **options: Any) -> int:
            if path in names:
                raise OSError(number, os.strerror(number))
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, "open", refuse_open)
        return monkeypatch

    return refuse_some


def assert_whole(root: Root) -> None:
    """Rows and parts agree."""
    live = queries.live_files(root).ingested()
    ids = ids_of_rows(live)
    assert chunk_ids(root) == ids
    root.refresh_from_db()
    assert (root.files, root.chunks) == (len(live), len(ids))


@pytest.mark.fault("What a completed run promises", "The folder is renamed or unmounted")
@pytest.mark.parametrize("comes_instead", [False, True], ids=["gone", "another folder"])
@pytest.mark.parametrize("first", [True, False], ids=["first ingest", "later ingest"])
def test_a_folder_that_goes_in_mid_run_is_not_published(
    client: Client,
    folder: Path,
    index: None,
    contents: Contents,
    small_pieces: None,
    monkeypatch: pytest.MonkeyPatch,
    comes_instead: bool,
    first: bool,
) -> None:
    repo = write_files(folder / "repo", many(40))
    before = {}
    if not first:
        before = contents(ingest(repo))
        write_files(repo, many(30, "second"))

    def go_away() -> None:
        repo.rename(folder / "renamed")
        if comes_instead:
            write_files(repo, many(40, "another's"))

    with monkeypatch.context() as patch:
        hook("embedding", Nth(2, go_away), patch.setattr)
        run = run_ingest(repo)
    answer = status_of(client, run)
    assert (answer["state"], answer["errorCode"]) == ("error", "ROOT_CHANGED")
    assert str(repo) in answer["lastError"]
    roots = Root.objects.all()
    assert [contents(root) for root in roots] == ([] if first else [before])
    assert [(root.last_state, root.files) for root in roots] == ([] if first else [("error", 40)])


@pytest.mark.fault("The folder is renamed or unmounted")
def test_a_folder_that_cannot_be_listed_any_more_is_not_published(
    client: Client, folder: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = write_files(folder / "repo", many(8))
    real = os.scandir

    def close() -> None:
        def refuse(where: Any) -> Any:
            if isinstance(where, int):  # a folder below the root; those of the data have paths
                raise PermissionError(errno.EACCES, "Permission denied")
            return real(where)

        monkeypatch.setattr(os, "scandir", refuse)

    with monkeypatch.context() as patch:
        hook("embedding", Nth(2, close), patch.setattr)
        run = run_ingest(repo)
    monkeypatch.setattr(os, "scandir", real)
    assert (run.state, run.error_code) == ("error", "ROOT_CHANGED")
    assert "Not readable" in run.last_error
    assert not Root.objects.exists()


@pytest.mark.fault("Files cannot be read")
def test_a_run_that_loses_many_of_its_files_keeps_the_old_index(
    client: Client,
    folder: Path,
    index: None,
    contents: Contents,
    small_pieces: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo = write_files(folder / "repo", many(40))
    root = ingest(repo)
    before = contents(root)
    write_files(repo, many(40, "second"))

    def delete_some() -> None:
        for path in sorted(repo.rglob("*.py"))[-5:]:
            path.unlink()

    with monkeypatch.context() as patch:
        hook("embedding", Nth(2, delete_some), patch.setattr)
        run = run_ingest(repo)
    answer = status_of(client, run)
    assert (answer["state"], answer["errorCode"]) == ("error", "FILES_UNREADABLE")
    assert "5 of 40 files cannot be read" in answer["lastError"]
    assert contents(root) == before


@pytest.mark.fault("Files cannot be read")
def test_a_few_files_may_go_in_mid_run(
    folder: Path, index: None, small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = write_files(folder / "repo", many(20))  # twelve are read before four are embedded

    def delete_some() -> None:
        for path in sorted(repo.rglob("*.py"))[-4:]:
            path.unlink()

    with monkeypatch.context() as patch:
        hook("embedding", Nth(2, delete_some), patch.setattr)
        root = ingest(repo)
    assert (root.files, root.skipped) == (16, 4)
    assert_whole(root)


@pytest.mark.fault("What a completed run promises", "Files cannot be read")
@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EACCES, "Not readable"),
        (errno.EIO, "Not readable: Input/output error"),
        (errno.EMFILE, "Not readable: Too many open files"),
        (errno.ENFILE, "Not readable: Too many open files in system"),
    ],
)
@pytest.mark.parametrize("name", ["f1.py", "pkg1"])
def test_what_cannot_be_read_is_kept_and_listed_until_it_can(
    client: Client,
    folder: Path,
    index: None,
    contents: Contents,
    refuse: Callable[..., pytest.MonkeyPatch],
    number: int,
    reason: str,
    name: str,
) -> None:
    repo = write_files(folder / "repo", many(12))
    root = ingest(repo)
    before = contents(root)
    write_files(repo, {"pkg0/f0.py": "def other():\n    pass\n"})
    unread = [path for path in many(12) if name in path.split("/")]
    for path in unread:
        # So that each is looked into again, whatever is known of it.
        os.utime(repo / path)
    patch = refuse(number, name)
    run = run_ingest(repo)
    patch.undo()
    assert run.state == "completed"
    after = contents(root)
    assert {key: after[key] for key in before if "/f0.py" not in key} == {
        key: before[key] for key in before if "/f0.py" not in key
    }
    assert_whole(root)
    problem_of = {file.path: file.problem for file in queries.live_files(root).with_problem()}
    assert problem_of == dict.fromkeys(unread, f"Kept as it was ingested: {reason}")
    for source in (f"root={root.id}", f"run={run.id}"):
        html = client.get(f"/ui/ingest/skipped?{source}").content.decode()
        assert html.count("Kept as it was ingested") == len(unread) + 1  # and the choice
        csv = client.get(f"/ui/ingest/skipped.csv?{source}").getvalue().decode()
        assert f"{unread[0]},Kept as it was ingested: {reason}," in csv
    assert "with a problem" in client.get("/ingest").content.decode()
    assert "with a problem" in client.get(f"/ui/ingest/root/{root.id}").content.decode()

    second = run_ingest(repo)
    assert (second.state, second.message) == ("skipped", "No changes detected")
    assert not queries.live_files(root).with_problem().exists()
    assert "with a problem" not in client.get("/ingest").content.decode()


@pytest.mark.fault("Files cannot be read")
def test_a_changed_file_that_fails_when_its_turn_comes_is_kept(
    folder: Path, index: None, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = write_files(folder / "repo", many(6))
    root = ingest(repo)
    before = contents(root)
    write_files(repo, {"pkg1/f1.py": "changed = 1\n", "pkg2/f2.py": "changed = 2\n"})
    write_files(repo, {"new.py": "new = 1\n"})

    def read(root: Path, path: str, *opened: object) -> bytes:
        if path in ("pkg1/f1.py", "new.py"):
            raise Unreadable("Not readable: Input/output error", path)
        return read_file(root, path)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "read_content", read)
        run = run_ingest(repo)
    assert (run.state, run.files, run.skipped) == ("completed", 1, 2)
    assert contents(root)["pkg1/f1.py:0"] == before["pkg1/f1.py:0"]
    assert contents(root)["pkg2/f2.py:0"] != before["pkg2/f2.py:0"]
    reasons = dict(queries.live_files(root).listed().values_list("path", "reason"))
    assert reasons == {
        "new.py": "Not readable: Input/output error",
        "pkg1/f1.py": "Kept as it was ingested: Not readable: Input/output error",
    }
    assert_whole(root)

    ingest(repo)
    clean = ingest_alone(write_files(folder / "clean", files_of(repo)))
    assert contents(root) == contents(clean)
    assert not queries.live_files(root).listed().exists()


@pytest.mark.fault("Files cannot be read")
def test_where_nothing_else_changed_a_file_that_is_kept_is_no_change(
    folder: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = write_files(folder / "repo", many(6))
    root = ingest(repo)
    write_files(repo, {"pkg1/f1.py": "changed = 1\n"})

    def read(root: Path, path: str, *opened: object) -> bytes:
        raise Unreadable("Not readable", path)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "read_content", read)
        run = run_ingest(repo)
    assert (run.state, run.message) == ("skipped", "No changes detected")
    assert_whole(root)
    assert root.generation == 1
    assert queries.live_files(root).with_problem().count() == 1


@pytest.mark.fault("Files cannot be read")
def test_what_was_kept_by_other_rules_is_made_anew_when_it_can_be_read(
    folder: Path,
    index: None,
    refuse: Callable[..., pytest.MonkeyPatch],
) -> None:
    repo = write_files(folder / "repo", many(6))
    root = ingest(repo)
    outdate(root)
    patch = refuse(errno.EACCES, "f1.py")
    assert run_ingest(repo).state == "completed"
    patch.undo()
    (row,) = queries.live_files(root).with_problem()
    assert row.problem == "Kept as it was ingested earlier: Not readable"
    assert_whole(root)
    assert (run_ingest(repo).files, row.run_id) == (1, row.run_id)
    assert not queries.live_files(root).with_problem().exists()
    assert_whole(root)


@pytest.mark.fault("Files cannot be read")
def test_a_folder_none_of_whose_files_can_be_read_keeps_its_index(
    client: Client,
    folder: Path,
    index: None,
    contents: Contents,
    refuse: Callable[..., pytest.MonkeyPatch],
) -> None:
    repo = write_files(folder / "repo", many(30))
    root = ingest(repo)
    before = contents(root)
    patch = refuse(errno.EACCES, *(f"pkg{n}" for n in range(4)))
    run = run_ingest(repo, force=True)
    patch.undo()
    assert (run.state, run.error_code) == ("error", "FILES_UNREADABLE")
    assert run.last_error == f"No files can be read in {repo} (pkg0/: Not readable)."
    assert queries.listed_by(run).skipped().count() == 4
    assert contents(root) == before


def remove(repo: Path, count: int) -> None:
    for path in sorted(repo.rglob("*.py"))[:count]:
        path.unlink()


@pytest.mark.fault("Most files have disappeared")
def test_most_files_gone_needs_confirmation_and_blocks_nothing(
    client: Client, folder: Path, index: None, contents: Contents
) -> None:
    repo = write_files(folder / "repo", many(40))
    root = ingest(repo)
    before = contents(root)
    remove(repo, 21)
    run = run_ingest(repo)
    answer = status_of(client, run)
    assert (answer["state"], answer["errorCode"]) == ("needs_confirmation", "FILES_DISAPPEARED")
    assert answer["message"] == "21 of 40 files have disappeared"
    assert answer["lastError"] == (
        "21 of 40 files have disappeared since the last ingest. Start again with force to publish."
    )
    assert answer["counts"] == {"files": 0, "chunks": 0, "embedded": 0, "skipped": 0}
    (row,) = client.get("/ingest/roots").json()["roots"]
    assert (row["status"], row["lastError"]) == ("needs_confirmation", answer["lastError"])
    assert contents(root) == before
    # Asking again without force asks again.
    assert run_ingest(repo).state == "needs_confirmation"
    html = client.get("/ingest").content.decode()
    assert "Needs confirmation" in html
    assert "Start again with force" in html
    assert "Start again with force" in client.get(f"/ui/ingest/root/{root.id}").content.decode()
    other = write_files(folder / "other", many(3))
    assert run_ingest(other).state == "completed"

    reply = client.post(
        f"/ingest/reembed/{repo}", json.dumps({"force": True}), content_type="application/json"
    )
    assert reply.status_code == 202
    queue.drain()
    forced = IngestRun.objects.get(id=reply.json()["runId"])
    assert (forced.state, forced.message) == ("skipped", "Removed vectors for 21 deleted file(s)")
    root.refresh_from_db()
    assert (root.files, root.last_state, root.last_error) == (19, "completed", "")
    assert_whole(root)
    assert "Start again" not in client.get(f"/ui/ingest/root/{root.id}").content.decode()


@pytest.mark.fault("Most files have disappeared")
@pytest.mark.door
def test_a_start_takes_force_over_http_and_from_the_page(
    client: Client, folder: Path, index: None
) -> None:
    repo = write_files(folder / "repo", many(60))
    root = ingest(repo)
    remove(repo, 40)
    body = {"path": str(repo), "name": "repo", "model": root.model, "force": True}
    client.post("/ingest/start", json.dumps(body), content_type="application/json")
    queue.drain()
    root.refresh_from_db()
    assert (root.files, root.last_state) == (20, "completed")
    remove(repo, 20)
    write_files(repo, {"kept.py": "kept = 1\n"})
    run = run_ingest(repo, "renamed", description="Ships")
    assert run.state == "needs_confirmation"
    answer = client.post(f"/ui/ingest/force/{run.id}", headers={"HX-Request": "true"})
    assert answer.status_code == 200
    queue.drain()
    root.refresh_from_db()
    assert (root.name, root.description, root.files) == ("renamed", "Ships", 1)


@pytest.mark.fault("Most files have disappeared")
def test_only_the_last_run_of_a_folder_is_confirmed_and_only_where_it_asks(
    client: Client, folder: Path, index: None
) -> None:
    repo = write_files(folder / "repo", many(40))
    root = ingest(repo)
    completed = IngestRun.objects.get(id=root.last_run_id)
    remove(repo, 21)
    dry = run_ingest(repo, dry_run=True)
    old = run_ingest(repo, "old name")
    new = run_ingest(repo)
    assert (old.state, new.state) == ("needs_confirmation", "needs_confirmation")
    for run in (completed, dry, old):
        client.post(f"/ui/ingest/force/{run.id}", headers={"HX-Request": "true"})
        assert not IngestRun.objects.filter(force=True).exists(), run
    client.post(f"/ui/ingest/force/{new.id}", headers={"HX-Request": "true"})
    assert IngestRun.objects.filter(force=True).count() == 1


@pytest.mark.parametrize("force", ["true", 1, None])
@pytest.mark.parametrize("route", ["start", "reembed"])
def test_force_is_true_or_false(
    client: Client, folder: Path, index: None, route: str, force: Any
) -> None:
    root = ingest(write_files(folder / "repo", many(2)))
    body = {"path": root.path, "name": "repo", "model": root.model, "force": force}
    address = "/ingest/start" if route == "start" else f"/ingest/reembed/{root.path}"
    answer = client.post(address, json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION")
    assert "force" in answer.json()["message"]


@pytest.mark.door
@pytest.mark.parametrize(("files", "missing"), [(40, 20), (30, 19)], ids=["half", "few"])
def test_fewer_files_may_go_without_a_word(
    folder: Path, index: None, files: int, missing: int
) -> None:
    repo = write_files(folder / "repo", many(files))
    root = ingest(repo)
    remove(repo, missing)
    assert run_ingest(repo).state == "skipped"
    root.refresh_from_db()
    assert root.files == files - missing


@pytest.mark.fault("Most files have disappeared")
@pytest.mark.door
def test_files_that_were_moved_or_are_left_out_now_have_not_disappeared(
    folder: Path, index: None
) -> None:
    repo = write_files(folder / "repo", many(40))
    root = ingest(repo)
    (repo / "packages").mkdir()
    for name in ("pkg0", "pkg1", "pkg2"):
        (repo / name).rename(repo / "packages" / name)
    assert run_ingest(repo).state == "completed"
    write_files(repo, {".gitignore": "/packages/\n"})
    assert run_ingest(repo).state == "completed"
    root.refresh_from_db()
    assert root.files == 11


@pytest.mark.fault("Most files have disappeared")
@pytest.mark.door
def test_a_git_checkout_whose_files_are_deleted_needs_confirmation(
    folder: Path, index: None
) -> None:
    repo = write_files(folder / "repo", many(40))
    git(repo, "init")
    git(repo, "add", "--all")
    root = ingest(repo)
    remove(repo, 30)
    assert run_ingest(repo).state == "needs_confirmation"
    root.refresh_from_db()
    assert root.files == 40


@pytest.mark.door
def test_a_dry_run_only_reports_disappeared_files(folder: Path, index: None) -> None:
    repo = write_files(folder / "repo", many(40))
    ingest(repo)
    remove(repo, 30)
    run = run_ingest(repo, dry_run=True)
    assert (run.state, run.message) == ("completed", "30 of 40 files have disappeared")


@pytest.mark.fault("Most files have disappeared")
def test_an_emptied_folder_is_published_only_with_force(folder: Path, index: None) -> None:
    repo = write_files(folder / "repo", many(3))
    root = ingest(repo)
    remove(repo, 3)
    assert run_ingest(repo).state == "error"
    assert len(chunk_ids(root)) > 0
    run = run_ingest(repo, force=True)
    assert (run.state, run.message) == ("skipped", "Removed vectors for 3 deleted file(s)")
    root.refresh_from_db()
    assert (root.files, len(chunk_ids(root))) == (0, 0)
    # A folder that was never ingested has nothing to take away.
    empty = folder / "empty"
    empty.mkdir()
    assert run_ingest(empty, force=True).state == "error"


@pytest.mark.fault("Files cannot be read")
def test_descriptors_that_run_out_in_a_walk_take_nothing_away(
    folder: Path, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every descriptor beyond a number fails, wherever that happens to be."""
    repo = write_files(folder / "repo", many(24))
    root = ingest(repo)
    monkeypatch.setattr(discovery, "SETTLE_NS", -(10**12))
    real, real_verdicts = os.open, discovery.Classifier.classify_all
    for allowed in range(6, 80, 7):
        left = iter(range(allowed))

        def fail(*arguments: Any, left: Any = left, **options: Any) -> int:
            if next(left, None) is None:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return real(*arguments, **options)

        with monkeypatch.context() as patch:

            def verdicts(self: Any, found: Any, check: Any, fail: Any = fail) -> Any:
                patch.setattr(os, "open", fail)
                try:
                    yield from real_verdicts(self, found, check)
                finally:
                    patch.setattr(os, "open", real)

            patch.setattr(discovery.Classifier, "classify_all", verdicts)
            run_ingest(repo)
        assert_whole(root)
        assert root.files == 24
