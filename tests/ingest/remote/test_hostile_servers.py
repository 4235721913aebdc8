"""Servers and repositories of strangers: a fetch ends with an error, and leaves nothing behind."""

import os
import struct
from hashlib import sha1
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID
from zlib import compress

import pytest
from django.test import Client

from apps.core.types import JSON
from apps.index.models import Clone, Root
from apps.ingest.discovery.own_data import clones_folder
from apps.ingest.remote import fetching
from apps.ingest.runs import queue
from tests.ingest.remote.cloning import cloned, start
from tests.ingest.requests import paths, post
from tests.support.git import commit_all, git, hostile, init
from tests.support.git_servers import HOST, GitServer, https_server
from tests.support.ingested import write_files
from tests.support.waiting import PATIENCE

pytestmark = [pytest.mark.django_db, pytest.mark.door]

SECRET = "ghp_secret"


def refused(status: JSON, reason: str = "", code: str = "CLONE_FAILED") -> None:
    """How a run ends that fetched nothing, and what it leaves: nothing."""
    assert (status["state"], status["errorCode"]) == ("error", code), status
    assert reason in status["lastError"]
    assert SECRET not in str(status)
    assert not Root.objects.exists() and not Clone.objects.exists()
    assert not clones_folder().exists() or not list(clones_folder().iterdir())


@pytest.mark.fault("A hostile git server")
def test_a_redirect_is_not_followed(
    client: Client, server: GitServer, served: Path, folder: Path, configure: Any, index: None
) -> None:
    """Also not with a login, which would be sent to the other host."""
    configure(clone_token=((urlsplit(server.url).netloc, SECRET),))
    with https_server(served.parent, folder / "other") as other:
        server.answer = lambda request: request.send(
            302, Location=other.url.replace("127.0.0.1", "localhost") + request.path
        )
        refused(cloned(client, f"{server.url}/harbour"), "redirects to another address")
        assert not other.requests


@pytest.mark.fault("A hostile git server")
def test_an_endless_pack_is_ended(
    client: Client, server: GitServer, index: None, monkeypatch: Any
) -> None:
    """Also that of a single commit, which is asked for then."""
    monkeypatch.setattr(fetching, "MAX_BYTES", 2_000_000)

    def answer(request: Any) -> bool:
        if not request.path.endswith("git-upload-pack") or b"command=fetch" not in request.body():
            return False
        request.send_response(200)
        request.send_header("Content-Type", "application/x-git-upload-pack-result")
        request.send_header("Connection", "close")
        request.end_headers()
        # An object whose text never ends: each packet of the side band is a piece of the pack.
        head = b"PACK" + struct.pack(">II", 2, 1) + bytes([0xB0 | 0, *[0xFF] * 4, 0x7F])
        request.wfile.write(_packet(b"packfile\n") + _packet(b"\1" + head))
        stored = bytes(1_000)
        try:
            while True:
                size = struct.pack("<BHH", 0, len(stored), len(stored) ^ 0xFFFF)
                request.wfile.write(_packet(b"\1" + size + stored))
        except OSError:
            return True

    server.answer = answer
    refused(cloned(client, f"{server.url}/harbour"))


def _packet(content: bytes) -> bytes:
    return b"%04x" % (len(content) + 4) + content


@pytest.mark.fault("A hostile git server")
def test_a_slow_server_is_given_up(
    client: Client, server: GitServer, index: None, monkeypatch: Any
) -> None:
    monkeypatch.setattr(fetching, "SLOW_SECONDS", 1)
    server.answer = lambda request: request.wait_for_end()
    refused(cloned(client, f"{server.url}/harbour"))


@pytest.mark.fault("A hostile git server")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"001e# service=git-upload-pack\n0000ffff",
        b"001e# service=git-upload-pack\n0000000eversion 2\n0000",
    ],
    ids=["nothing", "a page", "a wrong size", "a cut list"],
)
def test_nonsense_is_an_error(
    client: Client, server: GitServer, index: None, content: bytes
) -> None:
    kind = {"Content-Type": "application/x-git-upload-pack-advertisement"}
    server.answer = lambda request: request.send(200, content, **kind)
    refused(cloned(client, f"{server.url}/harbour"))


@pytest.mark.fault("A hostile git server")
def test_a_server_of_files_alone_is_read_within_the_limits(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    """The old protocol names further servers in a file; none of them is asked."""
    git(served, "update-server-info")
    (served / ".git/objects/info/http-alternates").write_text("https://localhost:1/objects\n")
    dot_git = served / ".git"

    def answer(request: Any) -> bool:
        file = dot_git / request.path.partition("?")[0].removeprefix("/harbour/")
        return request.send(200, file.read_bytes()) if file.is_file() else request.send(404)

    server.answer = answer
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    assert paths() == ["quay.py"]


@pytest.mark.fault("A hostile git server")
@pytest.mark.parametrize("name", [".git", "..", ".GIT", "git~1", ".gi\u200ct"])
def test_names_that_lead_out_of_the_folder_are_refused(
    client: Client, server: GitServer, served: Path, index: None, name: str
) -> None:
    blob = git(served, "rev-parse", "HEAD:quay.py").strip()
    inner = _tree(served, {"config": ("100644", blob)})
    tree = _tree(served, {name: ("40000", inner), "quay.py": ("100644", blob)})
    _commit(served, tree)
    refused(cloned(client, f"{server.url}/harbour"))


@pytest.mark.fault("A hostile git server")
def test_a_link_out_of_the_folder_is_not_followed(
    client: Client, server: GitServer, served: Path, folder: Path, index: None
) -> None:
    outside = write_files(folder / "outside", {"secret.py": "def secret():\n    return 1\n"})
    (served / "out").symlink_to(outside)
    (served / "one.py").symlink_to(outside / "secret.py")
    commit_all(served)
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    assert paths() == ["quay.py"]


@pytest.mark.fault("A hostile git server")
def test_names_that_differ_in_case_alone_are_two_files(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    write_files(served, {"Quay.py": "def other():\n    return 2\n"})
    commit_all(served)
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    assert paths() == ["Quay.py", "quay.py"]


@pytest.mark.fault("A hostile git server")
def test_a_tree_that_multiplies_is_refused(
    client: Client, server: GitServer, served: Path, index: None, monkeypatch: Any
) -> None:
    """Ten trees of ten lines are ten thousand million files."""
    monkeypatch.setattr(fetching, "MAX_OUTPUT", 1_000_000)
    blob = git(served, "rev-parse", "HEAD:quay.py").strip()
    tree = _tree(served, {f"f{number}": ("100644", blob) for number in range(10)})
    for _ in range(9):
        tree = _tree(served, {f"d{number}": ("40000", tree) for number in range(10)})
    _commit(served, tree)
    refused(cloned(client, f"{server.url}/harbour"), "too much")


@pytest.mark.fault("A hostile git server")
def test_many_references_are_not_fetched(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    commit = git(served, "rev-parse", "HEAD").strip()
    lines = [f"{commit} refs/heads/b/{number}\n" for number in range(100_000)]
    (served / ".git/packed-refs").write_text("".join(sorted(lines)))
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    dot_git = Path(Root.objects.get().path) / ".git"
    assert not (dot_git / "packed-refs").exists()
    assert [one.name for one in (dot_git / "refs/codeinfo").iterdir()] == ["fetched"]


@pytest.mark.fault("A hostile git server")
def test_nothing_of_a_repository_runs(
    client: Client, server: GitServer, served: Path, folder: Path, index: None
) -> None:
    """Hooks are not fetched; filters and submodules are named in files, and need a program."""
    mark = folder / "MARK"
    files = {
        ".gitattributes": "*.py filter=lfs diff=x merge=x\n",
        ".gitmodules": f'[submodule "m"]\n\tpath = m\n\turl = {served}\n\tupdate = none\n',
        ".lfsconfig": "[lfs]\n\turl = https://localhost:1/\n",
        ".gitconfig": f"[core]\n\tfsmonitor = touch {mark}\n",
    }
    write_files(served, files)
    commit_all(served)
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    assert not mark.exists()


@pytest.mark.fault("A hostile git server")
def test_texts_are_not_converted(
    client: Client, server: GitServer, served: Path, index: None
) -> None:
    """They would be four times as large, and iconv would run with an encoding of the stranger."""
    written = {"a.txt": "a" * 1_000, "b.c": "int a;\nint b;\n", "c.h": "// $Id$\n"}
    write_files(served, written)
    commit_all(served)
    rules = "*.txt working-tree-encoding=UTF-32\n*.c text eol=crlf\n*.h ident\n"
    write_files(served, {".gitattributes": rules})
    git(served, "add", ".gitattributes")
    git(served, "commit", "-qm", "x")
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    root = Path(Root.objects.get().path)
    assert {name: (root / name).read_bytes() for name in written} == {
        name: text.encode() for name, text in written.items()
    }


def test_an_old_git_is_not_used(
    client: Client, server: GitServer, folder: Path, index: None, monkeypatch: Any
) -> None:
    """It would ignore that it may connect to the checked addresses alone."""
    old = folder / "bin/git"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho git version 2.34.1\n")
    old.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
        refused(cloned(client, f"{server.url}/harbour"), "update git", "GIT_MISSING")
    assert not server.requests


@pytest.mark.fault("A hostile git server")
def test_what_an_agent_writes_into_a_clone_is_not_obeyed(
    client: Client, server: GitServer, served: Path, folder: Path, index: None
) -> None:
    cloned(client, f"{server.url}/harbour")
    dot_git, mark = Path(Root.objects.get().path) / ".git", folder / "MARK"
    for name, value in {
        "filter.x.smudge": f"touch {mark}",
        "core.fsmonitor": f"touch {mark}",
        "credential.helper": f"!touch {mark}",
        "http.proxy": "http://127.0.0.1:1",
    }.items():
        git(dot_git, "config", "--file", "config", name, value)
    (dot_git / "info/attributes").write_text("* filter=x\n")
    (dot_git / "hooks").mkdir()
    (dot_git / "hooks/post-checkout").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (dot_git / "hooks/post-checkout").chmod(0o700)
    (dot_git / "index.lock").touch()
    write_files(dot_git.parent, {"left.py": "def left():\n    return 1\n"})
    write_files(served, {"pier.py": "def pier():\n    return 1\n"})
    commit_all(served)
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    assert paths() == ["pier.py", "quay.py"]
    assert not mark.exists()


@pytest.mark.fault("A hostile git server")
def test_a_local_repository_runs_nothing(
    client: Client, server: GitServer, folder: Path, index: None
) -> None:
    repository, mark = hostile(folder / "archive", folder / "MARK"), folder / "MARK"
    refused(cloned(client, f"file://{repository}"))
    assert not mark.exists()


def test_a_local_repository_borrows_from_no_other_folder(
    client: Client, server: GitServer, folder: Path, configure: Any, index: None
) -> None:
    outside = init(folder / "outside")
    write_files(outside, {"a.py": "a = 1\n"})
    commit_all(outside)
    inside = init(folder / "base/inside")
    (inside / ".git/objects/info/alternates").write_text(f"{outside}/.git/objects\n")
    commit = git(outside, "rev-parse", "HEAD").strip()
    git(inside, "update-ref", "HEAD", commit)
    configure(ingest_base=(folder / "base",))
    refused(cloned(client, f"file://{inside}"), "may not be ingested", "GIT_FAILED")
    refused(cloned(client, f"file://{outside}"), "beneath", "URL_REFUSED")


def test_a_cancelled_fetch_ends_with_its_programs(
    client: Client, server: GitServer, index: None
) -> None:
    run = start(client, f"{server.url}/harbour")
    is_gone = Event()

    def answer(request: Any) -> bool:
        queue.jobs[UUID(run)].cancel()
        request.wait_for_end()
        is_gone.set()
        return True

    server.answer = answer
    queue.drain()
    assert is_gone.wait(PATIENCE)
    assert client.get(f"/ingest/status/{run}").json()["state"] == "cancelled"
    assert not Clone.objects.exists()


def test_a_history_above_the_limit_is_fetched_without_its_past(
    client: Client, server: GitServer, served: Path, index: None, monkeypatch: Any
) -> None:
    monkeypatch.setattr(fetching, "MAX_BYTES", 400_000)
    for number in range(4):
        noise = b"".join(sha1(b"%d %d" % (number, part)).digest() for part in range(7_000))
        (served / "noise.bin").write_bytes(noise)
        commit_all(served)
    status = cloned(client, f"{server.url}/harbour")
    assert status["state"] == "completed", str(status)
    status, answer = post(client, "/tools/history", {"of": "log", "repository": "harbour"})
    assert status == 200
    assert "This is a shallow clone" in str(answer)
    assert len(answer["results"]) == 1
    # Another fetch stays shallow.
    git(served, "commit", "-q", "--allow-empty", "-m", "z")
    cloned(client, f"{server.url}/harbour")
    assert Root.objects.get().commit == git(served, "rev-parse", "HEAD").strip()


def test_a_token_goes_to_its_host_and_is_shown_nowhere(
    client: Client, server: GitServer, configure: Any, index: None, caplog: Any
) -> None:
    def answer(request: Any) -> bool:
        if request.headers.get("Authorization"):
            return False
        return request.send(401, **{"WWW-Authenticate": 'Basic realm="x"'})

    server.answer = answer
    refused(cloned(client, f"{server.url}/harbour"), "wants a login")
    configure(clone_token=((HOST, SECRET),))
    # Another port may be another one's server.
    refused(cloned(client, f"{server.url}/harbour"), "wants a login")
    assert not any(given for _, given in server.requests)
    configure(clone_token=((urlsplit(server.url).netloc, SECRET),))
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"
    root = Root.objects.get()
    stored = [file for file in Path(root.path).rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in file.read_bytes() for file in stored)
    assert SECRET not in caplog.text


def test_the_helper_of_the_user_is_asked(
    client: Client, server: GitServer, folder: Path, index: None
) -> None:
    def answer(request: Any) -> bool:
        if request.headers.get("Authorization", "").startswith("Basic YWRhOn"):
            return False
        return request.send(401, **{"WWW-Authenticate": 'Basic realm="x"'})

    server.answer = answer
    with (folder / "home/.gitconfig").open("a") as file:
        file.write('[credential]\n\thelper = "!echo username=ada; echo password=x; #"\n')
    assert cloned(client, f"{server.url}/harbour")["state"] == "completed"


def _tree(repository: Path, entries: dict[str, tuple[str, str]]) -> str:
    """Write a tree that git itself would not make; returns its id."""
    rows = [
        f"{mode} {name}".encode() + b"\0" + bytes.fromhex(key)
        for name, (mode, key) in sorted(entries.items())
    ]
    return _write(repository, b"tree", b"".join(rows))


def _write(repository: Path, kind: bytes, content: bytes) -> str:
    data = kind + b" %d\0" % len(content) + content
    key = sha1(data).hexdigest()
    file = repository / ".git/objects" / key[:2] / key[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(compress(data))
    return key


def _commit(repository: Path, tree: str) -> None:
    head = git(repository, "commit-tree", tree, "-m", "x").strip()
    git(repository, "update-ref", "refs/heads/main", head)
