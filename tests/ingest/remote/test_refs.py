"""`PATH@REF`: a branch, tag or commit of a repository is ingested without its work tree."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index import queries
from apps.index.models import Clone, IngestRun, Root
from apps.ingest.discovery.own_data import clones_folder
from apps.ingest.remote import fetching
from apps.ingest.runs import queue
from tests.ingest.pages import HTMX
from tests.ingest.remote.cloning import cloned
from tests.ingest.requests import paths, post
from tests.support.git import commit_all, git, init
from tests.support.git_servers import GitServer
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

SIDE = ["quay.py", "side.py"]


def of(name: str) -> Root:
    return Root.objects.get(name=name)


def files(root: Root) -> list[str]:
    rows = queries.live_files(root).ingested()
    return sorted(rows.values_list("path", flat=True))


def commit_named(repository: Path, name: str) -> str:
    return git(repository, "rev-parse", f"{name}^{{commit}}").strip()


def by_form(client: Client, name: str, ref: str) -> Any:
    fields = {"root": of(name).id, "ref": ref}
    return client.post("/ui/ingest/ref", fields, headers=HTMX)


@pytest.fixture
def local(served: Path) -> Iterator[Path]:
    """A repository with the branches `main`, which is checked out, and `side/way`, and a tag."""
    git(served, "tag", "-a", "pkg@1.0", "-m", "x", "side/way")
    yield served
    shutil.rmtree(clones_folder(), ignore_errors=True)


@pytest.mark.parametrize(
    "ref", ["side/way", "pkg@1.0", "refs/heads/side/way", "origin/side/way", "commit", "short"]
)
def test_a_ref_is_ingested_beside_the_work_tree(
    client: Client, local: Path, index: None, ref: str
) -> None:
    commit = commit_named(local, "side/way")
    git(local, "update-ref", "refs/remotes/origin/side/way", commit)
    wanted = {"commit": commit, "short": commit[:9]}.get(ref, ref)
    ingest(local, "harbour master")
    before = git(local, "status", "--porcelain", "--branch")
    status = cloned(client, f"{local}@{wanted}")
    assert (status["state"], status["counts"]["files"]) == ("completed", 2), status
    root = of(f"harbour master@{wanted.replace('/', '~')}")
    assert (root.commit, files(root)) == (commit, SIDE)
    assert files(of("harbour master")) == ["quay.py"]
    assert git(local, "status", "--porcelain", "--branch") == before


def test_it_is_found_read_and_viewed(client: Client, local: Path, index: None) -> None:
    """Also where the work tree has gone on, and Grep, ReadFile and History as of a folder."""
    name = "harbour@side~way"
    cloned(client, f"{local}@side/way")
    write_files(local, {"side.py": "other = 1\n", "quay.py": "other = 2\n"})
    found = post(client, "/tools/vector-search", {"query": "sail a ship", "repository": name})[1]
    assert found["results"][0]["relPath"] == "side.py", found
    page = client.get(f"/code/{quote(name)}/side.py").content.decode()
    assert "sail" in page and "other" not in page
    for tool, body in {
        "grep": {"pattern": "def sail"},
        "read-file": {"path": "side.py"},
        "history": {"of": "log", "path": "side.py"},
        "list-files": {},
    }.items():
        code, answer = post(client, f"/tools/{tool}", {"repository": name, **body})
        assert code == 200 and "side.py" in str(answer), answer
    log = post(client, "/tools/history", {"of": "log", "repository": name})[1]
    assert len(log["results"]) == 2, log


def test_an_update_follows_the_branch_and_stays_at_a_commit(
    client: Client, local: Path, index: None
) -> None:
    """Also where the commit that was ingested is gone."""
    commit = commit_named(local, "side/way")
    for ref in ("side/way", commit):
        cloned(client, f"{local}@{ref}")
    git(local, "checkout", "-q", "side/way")
    write_files(local, {"side.py": "def row(ship):\n    return ship\n"})
    git(local, "commit", "-qa", "--amend", "-m", "y")
    git(local, "tag", "-d", "pkg@1.0")
    for root in Root.objects.all():
        assert post(client, f"/ingest/reembed/{root.path}", {})[0] == 202
        queue.drain()
    assert of("harbour@side~way").commit == commit_named(local, "side/way")
    assert of(f"harbour@{commit}").commit == commit
    git(local, "reflog", "expire", "--expire=now", "--all")
    git(local, "gc", "-q", "--prune=now")
    cloned(client, f"{local}@side/way")
    write_files(local, {"side.py": "def drift(ship):\n    return ship\n"})
    git(local, "commit", "-qa", "--amend", "-m", "z")
    git(local, "reflog", "expire", "--expire=now", "--all")
    git(local, "gc", "-q", "--prune=now")
    assert cloned(client, f"{local}@side/way")["state"] == "completed"
    assert of("harbour@side~way").commit == commit_named(local, "side/way")
    # Without its commit nothing changes: what was published stays.
    status = cloned(client, f"{local}@{commit}")
    assert (status["state"], status["errorCode"]) == ("error", "CLONE_FAILED"), status
    assert files(of(f"harbour@{commit}")) == SIDE


def test_files_are_shared_by_their_content(client: Client, local: Path, index: None) -> None:
    git(local, "checkout", "-q", "side/way")
    write_files(local, {f"pier{i}.py": f"def pier{i}():\n    return {i}\n" for i in range(4)})
    commit_all(local)
    ingest(local, "harbour")
    cloned(client, f"{local}@side/way")
    ref = of("harbour@side~way")
    assert ref.store == of("harbour").store
    rows = [queries.live_files(root).ingested() for root in Root.objects.all()]
    documents = [set(of_root.values_list("path", "document")) for of_root in rows]
    assert documents[0] == documents[1] and len(documents[0]) == 6


def test_a_folder_whose_name_has_an_at_comes_first(
    client: Client, local: Path, folder: Path, index: None
) -> None:
    beside = folder / "served/harbour@v1"
    write_files(beside, {"own.py": "own = 1\n"})
    assert cloned(client, str(beside), name="own")["state"] == "completed"
    assert paths() == ["own.py"]
    # The form at a repository means the ref.
    ingest(local, "harbour")
    answer = by_form(client, "harbour", "v1")
    assert answer.status_code == 200
    queue.drain()
    assert files(of("harbour@v1")) == ["quay.py"]


def test_a_ref_of_a_repository_by_url_is_fetched_from_there(
    client: Client, server: GitServer, index: None
) -> None:
    cloned(client, f"{server.url}/harbour", name="port")
    before = len(server.requests)
    drawer = client.get(f"/ui/ingest/root/{of('port').id}").content.decode()
    assert "Another branch, tag or commit" in drawer
    answer = by_form(client, "port", " side/way ")
    assert answer.status_code == 200
    queue.drain()
    assert len(server.requests) > before
    ref = of("port@side~way")
    assert files(ref) == SIDE
    assert Clone.objects.get(path=ref.path).url == f"{server.url}/harbour@side/way"


def test_a_removal_deletes_what_was_taken(client: Client, local: Path, index: None) -> None:
    cloned(client, f"{local}@side/way")
    root = Root.objects.get()
    assert Path(root.path).parent == clones_folder()
    assert post(client, f"/ingest/remove/{root.path}")[0] == 200
    assert not Path(root.path).exists() and not Clone.objects.exists()
    assert (local / "quay.py").exists()


@pytest.mark.parametrize(
    "ref", ["", "nothing", "--upload-pack=x", "a..b", "HEAD@{1}", "a b", "x:y"]
)
def test_the_form_says_why_a_ref_is_refused(
    client: Client, local: Path, index: None, ref: str
) -> None:
    ingest(local, "harbour")
    answer = by_form(client, "harbour", ref)
    if ref == "nothing":
        queue.drain()
        assert "no branch, tag or commit named" in IngestRun.objects.latest("queued_at").last_error
        return
    assert answer.status_code == 422 and "URL_REFUSED" in answer["HX-Trigger"]


def test_a_reference_to_another_one_is_followed(client: Client, local: Path, index: None) -> None:
    """As `origin/HEAD` is in each clone. A loop ends."""
    commit = commit_named(local, "side/way")
    git(local, "update-ref", "refs/remotes/origin/main", commit)
    git(local, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(local, "symbolic-ref", "refs/heads/loop", "refs/heads/loop")
    (local / ".git/refs/heads/out").write_text("ref: ../out\n")
    (local / "out").write_text(f"{commit}\n")
    assert cloned(client, f"{local}@origin/HEAD")["state"] == "completed"
    assert of("harbour@origin~HEAD").commit == commit
    for ref in ("loop", "out"):
        assert "no branch, tag or commit named" in cloned(client, f"{local}@{ref}")["lastError"]


def test_a_ref_is_not_offered_as_a_plain_folder(client: Client, local: Path, index: None) -> None:
    (local / ".git/reftable").mkdir()
    assert cloned(client, f"{local}@v1")["errorCode"] == "GIT_FAILED"
    page = client.get("/ingest").content.decode()
    assert "in a reftable" in page and "Ingest as a plain folder" not in page


def test_an_id_that_is_not_there_is_named(client: Client, local: Path, index: None) -> None:
    status = cloned(client, f"{local}@deadbeef")
    assert status["lastError"] == "The repository was not fetched: it has no commit 'deadbeef'."


@pytest.mark.fault("A hostile git server")
@pytest.mark.parametrize(
    "ref",
    [
        *("--upload-pack=touch", "-x", "a..b", "HEAD@{1}", "a\0b", "a\nb", "x^{/y}", "x:y", ":/x"),
        *("a/../../b", "x.lock", "a//b", "@", "refs/heads/../../../HEAD", "a\u202eb", "a" * 1_000),
    ],
)
def test_what_is_no_ref_is_refused(client: Client, local: Path, ref: str) -> None:
    body = {"path": f"{local}@{ref}", "model": DEFAULT_MODEL, "name": "x"}
    status, answer = post(client, "/ingest/start", body)
    assert status in (400, 404), answer
    assert not Clone.objects.exists()


@pytest.mark.parametrize("place", ["quay.py@v1", "nothing@v1", "../outside@v1", "@v1"])
def test_what_is_no_folder_has_no_ref(
    client: Client, local: Path, folder: Path, configure: Any, place: str
) -> None:
    (folder / "outside").mkdir()
    configure(ingest_base=(local,))
    body = {"path": f"{local}/{place}", "model": DEFAULT_MODEL, "name": "x"}
    status, answer = post(client, "/ingest/start", body)
    assert (status, answer["code"]) in {
        (404, "NOT_FOUND"),
        (400, "OUTSIDE_BASE"),
    }, answer


def test_a_ref_outside_of_the_bases_is_refused_as_the_folder_is(
    client: Client, local: Path, folder: Path, configure: Any
) -> None:
    configure(ingest_base=(folder / "other",))
    body = {"path": f"{local}@v1", "model": DEFAULT_MODEL}
    assert post(client, "/ingest/start", body)[1]["code"] == "OUTSIDE_BASE"


def test_where_the_repository_is_gone_what_was_published_stays(
    client: Client, local: Path, folder: Path, index: None
) -> None:
    cloned(client, f"{local}@side/way")
    shutil.move(local, folder / "elsewhere")
    root = of("harbour@side~way")
    assert post(client, f"/ingest/reembed/{root.path}", {})[0] == 202
    queue.drain()
    assert "No such file" in IngestRun.objects.latest("queued_at").last_error
    assert post(client, "/tools/read-file", {"repository": root.name, "path": "side.py"})[0] == 200
    code, answer = post(client, "/tools/history", {"of": "log", "repository": root.name})
    assert (code, answer["error"]) == (503, "GIT_FAILED") and str(local) in answer["message"]
    body = {"path": f"{local}@side/way", "model": DEFAULT_MODEL}
    assert post(client, "/ingest/start", body)[1]["code"] == "NOT_FOUND"


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_an_index_that_git_does_not_read_is_made_again(
    client: Client, local: Path, index: None, kind: str
) -> None:
    """As after a loss of power, or in another repository at the same place."""
    cloned(client, f"{local}@main")
    if kind == "sha1":
        file = Path(of("harbour@main").path) / ".git/index"
        file.write_bytes(bytes(file.stat().st_size))
        git(local, "commit", "-q", "--allow-empty", "-m", "y")
    else:
        shutil.rmtree(local)
        init(local, "-b", "main", f"--object-format={kind}")
        write_files(local, {"pier.py": "pier = 1\n"})
        commit_all(local)
    assert cloned(client, f"{local}@main", force=True)["state"] in ("completed", "skipped")
    root = of("harbour@main")
    assert root.commit == commit_named(local, "main")
    assert files(root) == (["quay.py"] if kind == "sha1" else ["pier.py"])


def test_a_partial_clone_whose_files_are_not_there_is_named(
    client: Client, local: Path, index: None
) -> None:
    git(local, "config", "uploadpack.allowFilter", "true")
    git(local, "clone", "-q", "--filter=blob:none", "-b", "main", f"file://{local}", "../partial")
    status = cloned(client, f"{local.parent}/partial@origin/side/way")
    assert (status["state"], status["errorCode"]) == ("error", "CLONE_FAILED"), status
    assert "1 of its 2 files are not there, as in a partial clone" in status["lastError"]
    git(local.parent / "partial", "fetch", "-q", "--refetch", "--no-filter")
    assert cloned(client, f"{local.parent}/partial@origin/side/way")["state"] == "completed"


def test_equal_files_of_refs_are_answered_once(client: Client, local: Path, index: None) -> None:
    """By the work tree; the file that differs by both. Each ref has all its files for itself."""
    write_files(local, {"pier.py": "from quay import moor\n\n\ndef land(ship):\n    moor(ship)\n"})
    commit_all(local)
    git(local, "tag", "v2")
    write_files(local, {"pier.py": "from quay import moor\n\n\ndef land(it):\n    moor(it)\n"})
    commit_all(local)
    for ref in ("@v2", "@v1", "@main"):
        cloned(client, f"{local}{ref}")
    ingest(local, "harbour")

    def found(tool: str, **body: Any) -> list[tuple[str, str]]:
        rows = post(client, f"/tools/{tool}", body)[1]["results"]
        return sorted({(row["repo"], row["relPath"]) for row in rows})

    once = [("harbour", "quay.py")]
    twice = [("harbour", "pier.py"), ("harbour@v2", "pier.py")]
    assert found("vector-search", query="moor land ship") == sorted(once + twice)
    assert found("grep", pattern="def moor") == once
    assert found("symbol-definitions", name="moor") == once
    assert found("find-callers", name="moor") == twice
    assert found("grep", pattern="def moor", repository="harbour@v1") == [("harbour@v1", "quay.py")]
    # Without the work tree, the ref that was ingested first answers.
    assert post(client, f"/ingest/remove/{local}")[0] == 200
    assert found("grep", pattern="def moor") == [("harbour@v2", "quay.py")]


def test_a_question_that_names_a_ref_is_answered_by_it(
    client: Client, local: Path, folder: Path, index: None
) -> None:
    """Also with files that the work tree has, too; a question that names the repository is not."""
    write_files(local, {"pier.py": "def land(ship):\n    return ship\n"})
    commit_all(local)
    git(local, "tag", "v2")
    write_files(local, {"pier.py": "def land(it):\n    return it\n"})
    ingest(local, "harbour")
    cloned(client, f"{local}@v2")
    ingest(write_files(folder / "other", {"dock.py": "def land_ship(ship):\n    land(ship)\n"}))

    def first(query: str) -> tuple[str, str]:
        row = post(client, "/tools/vector-search", {"query": query})[1]["results"][0]
        return row["repo"], row["relPath"]

    assert first("land a ship in harbour@v2") == ("harbour@v2", "pier.py")
    assert first("moor in harbour@v2") == ("harbour@v2", "quay.py")
    assert first("land a ship in harbour") == ("harbour", "pier.py")


def test_equal_files_of_refs_by_url_are_answered_once(
    client: Client, server: GitServer, index: None
) -> None:
    for ref in ("", "@v1", "@side/way"):
        cloned(client, f"{server.url}/harbour{ref}")
    rows = post(client, "/tools/grep", {"pattern": "def (moor|sail)"})[1]["results"]
    assert {(row["repo"], row["relPath"]) for row in rows} == {
        ("harbour", "quay.py"),
        ("harbour@side~way", "side.py"),
    }


def test_a_ref_has_what_its_outdated_work_tree_no_longer_answers_for(
    client: Client, local: Path, index: None
) -> None:
    """The folder around the work tree was ingested later, with another version of the file."""
    ingest(local, "harbour")
    cloned(client, f"{local}@v1")
    write_files(local, {"quay.py": "def leave(ship):\n    return ship\n"})
    cloned(client, str(local.parent), name="all", plainFolder=True)
    rows = post(client, "/tools/grep", {"pattern": "def (moor|leave)"})[1]["results"]
    assert sorted((row["repo"], row["relPath"]) for row in rows) == [
        ("all", "harbour/quay.py"),
        ("harbour@v1", "quay.py"),
    ]


def raw_tree(repository: Path, entries: dict[str, tuple[str, str]]) -> str:
    """A tree that git itself would refuse to make."""
    content = b"".join(
        f"{mode} {name}\0".encode() + bytes.fromhex(one) for name, (mode, one) in entries.items()
    )
    file = repository / ".git/raw"
    file.write_bytes(content)
    return git(repository, "hash-object", "--literally", "-t", "tree", "-w", str(file)).strip()


def tagged(repository: Path, tree: str) -> None:
    commit = git(repository, "commit-tree", "-m", "x", tree).strip()
    git(repository, "tag", "-f", "bad", commit)


@pytest.mark.fault("A hostile git server")
@pytest.mark.parametrize("name", [".git", "..", ".GIT", "git~1", "../../../out", "a/../../b", "/x"])
def test_names_that_lead_out_of_the_folder_are_refused(
    client: Client, local: Path, index: None, name: str
) -> None:
    blob = git(local, "rev-parse", "HEAD:quay.py").strip()
    inner = raw_tree(local, {"config": ("100644", blob)})
    tagged(local, raw_tree(local, {name: ("40000", inner), "quay.py": ("100644", blob)}))
    before = sorted(one for one in local.parent.rglob("*") if ".git" not in one.parts)
    status = cloned(client, f"{local}@bad")
    assert (status["state"], status["errorCode"]) == ("error", "CLONE_FAILED"), status
    assert before == sorted(one for one in local.parent.rglob("*") if ".git" not in one.parts)
    assert not Root.objects.exists() and not list(clones_folder().iterdir())


@pytest.mark.fault("A hostile git server")
def test_a_tree_under_a_link_is_not_written_through_it(
    client: Client, local: Path, folder: Path, index: None
) -> None:
    outside = folder / "outside"
    outside.mkdir()
    link = git(local, "hash-object", "-w", str(write_link(local, outside))).strip()
    blob = git(local, "rev-parse", "HEAD:quay.py").strip()
    inner = raw_tree(local, {"own.py": ("100644", blob)})
    tagged(local, raw_tree(local, {"a": ("120000", link), "a/": ("40000", inner)}))
    cloned(client, f"{local}@bad")
    tagged(local, raw_tree(local, {"a": ("120000", link), "b.py": ("100644", blob)}))
    cloned(client, f"{local}@bad")
    tagged(local, raw_tree(local, {"a": ("40000", inner), "b.py": ("100644", blob)}))
    assert cloned(client, f"{local}@bad")["state"] == "completed"
    assert files(of("harbour@bad")) == ["a/own.py", "b.py"]
    assert not list(outside.iterdir())


def write_link(repository: Path, target: Path) -> Path:
    file = repository / ".git/link"
    file.write_text(str(target))
    return file


@pytest.mark.fault("A hostile git server")
def test_links_submodules_and_names_in_another_case(
    client: Client, local: Path, index: None
) -> None:
    """A loop of links is not followed, a submodule is not fetched, two names are two files."""
    blob = git(local, "rev-parse", "HEAD:quay.py").strip()
    loop = git(local, "hash-object", "-w", str(write_link(local, Path("loop")))).strip()
    entries = {"Quay.py": ("100644", blob), "loop": ("120000", loop), "quay.py": ("100644", blob)}
    entries["sub"] = ("160000", commit_named(local, "HEAD"))
    tagged(local, raw_tree(local, entries))
    assert cloned(client, f"{local}@bad")["state"] == "completed"
    assert files(of("harbour@bad")) == ["Quay.py", "quay.py"]


@pytest.mark.fault("A hostile git server")
def test_secrets_and_the_rules_of_the_tree_hold(client: Client, local: Path, index: None) -> None:
    """Of the tree of the ref, and not of the work tree."""
    written = {".env": "KEY=1\n", "id_rsa": "x\n", "gone.py": "gone = 1\n"}
    write_files(local, {**written, ".codeinfoignore": "gone.py\n"})
    commit_all(local)
    git(local, "tag", "v3")
    git(local, "rm", "-q", ".codeinfoignore")
    git(local, "commit", "-qm", "x")
    cloned(client, f"{local}@v3")
    assert files(of("harbour@v3")) == [".codeinfoignore", "quay.py"]


@pytest.mark.fault("A hostile git server")
def test_limits_of_a_tree_hold(client: Client, local: Path, index: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(fetching, "MAX_FILES", 1)
    status = cloned(client, f"{local}@side/way")
    assert (status["state"], status["errorCode"]) == ("error", "CLONE_FAILED"), status
    assert "at most 1" in status["lastError"]
    monkeypatch.setattr(fetching, "MAX_FILES", 10)
    monkeypatch.setattr(fetching, "MAX_TREE_BYTES", 10)
    assert cloned(client, f"{local}@side/way")["errorCode"] == "CLONE_FAILED"
    assert not Root.objects.exists() and not list(clones_folder().iterdir())


@pytest.mark.fault("A hostile git server")
def test_nothing_of_the_repository_runs(
    client: Client, local: Path, folder: Path, index: None
) -> None:
    mark = folder / "MARK"
    write_files(local, {".gitattributes": "* filter=x diff=x\n"})
    commit_all(local)
    for name, value in {
        "filter.x.smudge": f"touch {mark}; cat",
        "filter.x.process": f"touch {mark}",
        "core.fsmonitor": f"touch {mark}",
        "uploadpack.packObjectsHook": f"touch {mark}",
        "core.hooksPath": str(folder),
    }.items():
        git(local, "config", name, value)
    (folder / "post-checkout").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (folder / "post-checkout").chmod(0o700)
    assert cloned(client, f"{local}@main")["state"] == "completed"
    assert not mark.exists()


def test_many_references_and_a_shallow_repository_are_read(
    client: Client, local: Path, folder: Path, index: None
) -> None:
    git(local, "clone", "-q", "--depth=1", "--branch=side/way", f"file://{local}", "../shallow")
    shallow = local.parent / "shallow"
    commit = commit_named(shallow, "HEAD")
    lines = [f"{commit} refs/heads/b/{number}\n" for number in range(10_000)]
    (shallow / ".git/packed-refs").write_text("".join(sorted(lines)))
    assert cloned(client, f"{shallow}@b/9999")["state"] == "completed"
    name = "shallow@b~9999"
    assert files(of(name)) == SIDE
    log = post(client, "/tools/history", {"of": "log", "repository": name})[1]
    assert "shallow" in str(log), log


def test_a_worktree_and_a_repository_without_one_have_refs(
    client: Client, local: Path, index: None
) -> None:
    git(local, "worktree", "add", "-q", "../tree", "side/way")
    git(local, "clone", "-q", "--bare", str(local), "../bare.git")
    for name in ("tree", "bare.git"):
        assert cloned(client, f"{local.parent}/{name}@v1")["state"] == "completed", name
    assert set(Root.objects.values_list("name", flat=True)) == {"tree@v1", "bare@v1"}


def test_a_repository_with_long_ids_has_refs(client: Client, folder: Path, index: None) -> None:
    repository = init(folder / "served/long", "-b", "main", "--object-format=sha256")
    write_files(repository, {"quay.py": "def moor(ship):\n    return ship\n"})
    commit_all(repository)
    assert cloned(client, f"{repository}@main")["state"] == "completed"
    assert of("long@main").commit == commit_named(repository, "main")
    assert post(client, f"/ingest/remove/{of('long@main').path}")[0] == 200


def test_a_long_ref_of_a_clone_is_refused(client: Client, server: GitServer, index: None) -> None:
    cloned(client, f"{server.url}/harbour")
    answer = by_form(client, "harbour", "a" * 990)
    assert answer.status_code == 422 and "URL_REFUSED" in answer["HX-Trigger"]
