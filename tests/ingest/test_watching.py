"""The index follows the folders: a server finds what changed there, and its answers say what they
stand on."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.browser.product import Product, running
from tests.power.recording import mounted
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files
from tests.support.served import ingest_into, start_ingest
from tests.support.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.door

MANY = {f"src/many/file_{number}.py": f"def number_{number}(): ...\n" for number in range(60)}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    folder = tmp_path_factory.mktemp("watching")
    with running(folder, CODEINFO_WATCH="auto", CODEINFO_FRESH_WAIT_MS="2000") as product:
        yield product


@pytest.fixture
def repo(product: Product, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A watched repository of git, with one commit."""
    name = request.node.name.partition("[")[0].removeprefix("test_")[:40]
    folder = init(product.repos / name, "-b", "main")
    write_files(folder, {"src/app.py": "def old_name():\n    return 1\n", "docs/a.md": "# Old\n"})
    commit_all(folder)
    ingest_into(product, folder)
    wait_until(lambda: "as soon as they are told" in drawer(product, folder))
    wait_until(lambda: "stale" not in answer(product, folder, "old_name"))
    yield folder
    httpx.post(f"{product.url}/ingest/remove/{quoted(folder)}", timeout=PATIENCE)


def key_of(product: Product, folder: Path) -> str:
    page = httpx.get(f"{product.url}/ingest", timeout=PATIENCE).text
    return page.split(f'data-row="{folder.name} ')[0].rsplit('id="root-', 1)[1].split('"')[0]


def drawer(product: Product, folder: Path) -> str:
    address = f"{product.url}/ui/ingest/root/{key_of(product, folder)}"
    return httpx.get(address, timeout=PATIENCE).text


def quoted(folder: Path) -> str:
    return str(folder).replace("/", "%2F")


def answer(product: Product, folder: Path, text: str) -> dict[str, Any]:
    body = {"pattern": text, "fixed": True, "repository": folder.name}
    reply = httpx.post(f"{product.url}/tools/grep", json=body, timeout=PATIENCE)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def places(product: Product, folder: Path, text: str) -> list[str]:
    return [row["relPath"] for row in answer(product, folder, text)["results"]]


def counts(product: Product) -> dict[str, int]:
    """Those of the only repository."""
    (root,) = httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()["roots"]
    found: dict[str, int] = root["counts"]
    return found


def until_at(product: Product, folder: Path, text: str, *paths: str) -> None:
    wait_until(lambda: places(product, folder, text) == list(paths))


def generation(product: Product, folder: Path) -> int:
    """It grows by 1 with each run that changes something."""
    found: int = answer(product, folder, "def")["index"][folder.name]["generation"]
    return found


def test_an_edit_is_found(product: Product, repo: Path) -> None:
    (repo / "src/app.py").write_text("def new_name():\n    return 2\n")
    until_at(product, repo, "new_name", "src/app.py")
    assert places(product, repo, "old_name") == []


def test_what_was_written_a_moment_ago_is_found_at_once(product: Product, repo: Path) -> None:
    """By a program that saves a file and asks in the same breath."""
    for number in range(5):
        (repo / "src/app.py").write_text(f"def just_now_{number}(): ...\n")
        assert places(product, repo, f"just_now_{number}") == ["src/app.py"]


def test_files_and_folders_come_move_and_go(product: Product, repo: Path) -> None:
    write_files(repo, {"lib/deep/new.py": "def in_deep(): ...\n", "src/two.py": "def two(): ...\n"})
    until_at(product, repo, "in_deep", "lib/deep/new.py")
    until_at(product, repo, "def two", "src/two.py")
    (repo / "lib/deep").rename(repo / "lib/other")
    until_at(product, repo, "in_deep", "lib/other/new.py")
    write_files(repo, {"lib/other/later.py": "def later(): ...\n"})
    until_at(product, repo, "def later", "lib/other/later.py")
    shutil.rmtree(repo / "lib")
    until_at(product, repo, "in_deep")
    (repo / "src/two.py").rename(repo / "src/three.py")
    until_at(product, repo, "def two", "src/three.py")


def test_a_checkout_is_one_run(product: Product, repo: Path) -> None:
    git(repo, "checkout", "-qb", "feature")
    write_files(repo, MANY)
    commit_all(repo)
    until_at(product, repo, "number_59", "src/many/file_59.py")
    wait_until(lambda: answer(product, repo, "old_name")["index"][repo.name]["branch"] == "feature")
    before = generation(product, repo)
    git(repo, "checkout", "-q", "main")
    until_at(product, repo, "number_59")
    wait_until(lambda: answer(product, repo, "old_name")["index"][repo.name]["branch"] == "main")
    assert generation(product, repo) == before + 1


def test_a_changed_commit_explains_that_most_files_are_gone(product: Product, repo: Path) -> None:
    """Compare `test_most_files_are_gone`."""
    git(repo, "checkout", "-qb", "feature")
    write_files(repo, MANY)
    commit_all(repo)
    until_at(product, repo, "number_59", "src/many/file_59.py")
    git(repo, "checkout", "-q", "main")
    until_at(product, repo, "number_59")


def test_most_files_are_gone(product: Product, repo: Path) -> None:
    """Nobody is asked twice, and nothing is lost until somebody has said so."""
    write_files(repo, MANY)
    commit_all(repo)
    until_at(product, repo, "number_59", "src/many/file_59.py")
    shutil.rmtree(repo / "src/many")

    def waits() -> bool:
        roots = httpx.get(f"{product.url}/ingest/roots", timeout=PATIENCE).json()["roots"]
        (root,) = (one for one in roots if one["name"] == repo.name)
        return bool(root["status"] == "needs_confirmation")

    wait_until(waits)
    (repo / "src/app.py").write_text("def another(): ...\n")
    wait_until(lambda: "not ingested" in answer(product, repo, "number_59").get("stale", ""))
    assert places(product, repo, "number_59") == ["src/many/file_59.py"]
    assert answer(product, repo, "number_59")["gone"] == [f"{repo.name}/src/many/file_59.py"]
    git(repo, "checkout", "-q", ".")
    git(repo, "checkout", "-qb", "other")
    wait_until(lambda: not waits())  # by itself


def test_a_folder_that_is_away(product: Product, repo: Path) -> None:
    away = repo.with_name("away")
    repo.rename(away)
    wait_until(lambda: "folder is gone" in answer(product, repo, "old_name").get("stale", ""))
    assert places(product, repo, "old_name") == ["src/app.py"]
    nothing = answer(product, repo, "nowhere_at_all")
    assert next(iter(nothing)) == "stale"
    assert all("folder is gone" in text for text in told(product))
    assert folders(product)["word"] == "Away"
    (away / "src/app.py").write_text("def back_again(): ...\n")
    away.rename(repo)
    until_at(product, repo, "back_again", "src/app.py")
    wait_until(lambda: "stale" not in answer(product, repo, "back_again"))
    wait_until(lambda: not any("folder is gone" in text for text in told(product)))
    assert folders(product)["word"] != "Away"


def told(product: Product) -> list[str]:
    """The Ingest page, a search page, and what /health says of folders."""
    with httpx.Client(base_url=product.url, timeout=PATIENCE) as client:
        pages = [client.get("/ingest").text, client.get("/search", params={"q": "def"}).text]
        return [*pages, client.get("/health").json()["parts"]["folders"]["detail"]]


def folders(product: Product) -> dict[str, str]:
    found: dict[str, str] = httpx.get(f"{product.url}/health", timeout=PATIENCE).json()["parts"][
        "folders"
    ]
    return found


def test_what_does_not_belong_to_the_folder(product: Product, repo: Path) -> None:
    write_files(repo, {".gitignore": "built/\n"})
    write_files(
        repo,
        {
            "built/out.py": "def in_built(): ...\n",
            "node_modules/a/b.py": "def in_modules(): ...\n",
            "src/.app.py.swp": "def in_swap(): ...\n",
            "src/seen.py": "def seen(): ...\n",
        },
    )
    until_at(product, repo, "def seen", "src/seen.py")
    for text in ("in_built", "in_modules", "in_swap"):
        assert places(product, repo, text) == []
    (repo / ".gitignore").unlink()
    until_at(product, repo, "in_built", "built/out.py")


def test_a_file_that_was_only_touched_has_not_changed(product: Product, repo: Path) -> None:
    os.utime(repo / "src/app.py", ns=(1, 1))
    wait_until(lambda: "changedFiles" not in answer(product, repo, "old_name"))
    assert places(product, repo, "old_name") == ["src/app.py"]


def test_automatic_runs_are_not_in_the_way(product: Product, repo: Path) -> None:
    for number in range(5):
        (repo / "src/app.py").write_text(f"def version_{number}(): ...\n")
        start_ingest(product, repo)  # 202, never 429
        until_at(product, repo, f"version_{number}", "src/app.py")
        wait_until(
            lambda: httpx.get(f"{product.url}/ingest/runs", timeout=PATIENCE).json()["runs"] == []
        )


def test_they_can_be_switched_off(product: Product, repo: Path) -> None:
    key = key_of(product, repo)

    def switch(value: str) -> None:
        with httpx.Client(base_url=product.url, timeout=PATIENCE) as client:
            client.get("/ingest")
            headers = {"Origin": product.url, "X-CSRFToken": client.cookies.get("csrftoken", "")}
            sent = {"watch": value}
            reply = client.post(f"/ui/ingest/watch/{key}", data=sent, headers=headers)
        assert reply.status_code == 200, reply.text

    switch("off")
    wait_until(lambda: "Wait for an ingest." in drawer(product, repo))
    (repo / "src/app.py").write_text("def unseen(): ...\n")
    found = answer(product, repo, "old_name")
    assert found["changedFiles"] == [f"{repo.name}/src/app.py"]
    switch("on")
    until_at(product, repo, "unseen", "src/app.py")


def test_an_answer_of_mcp_says_what_it_stands_on(product: Product, repo: Path) -> None:
    params = {"name": "Grep", "arguments": {"pattern": "old_name", "repository": repo.name}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"Accept": "application/json, text/event-stream"}
    reply = httpx.post(f"{product.url}/mcp", json=message, headers=headers, timeout=PATIENCE)
    result = reply.json()["result"]
    index = result["_meta"]["codeinfo/index"][repo.name]
    assert index["commit"] == git(repo, "rev-parse", "HEAD").strip()
    assert index["branch"] == "main"
    assert "index" not in result["structuredContent"]


def test_by_looking(tmp_path: Path) -> None:
    """Where the kernel does not tell."""
    with running(tmp_path, CODEINFO_WATCH="poll") as product:
        folder = write_files(product.repos / "polled", {"src/app.py": "def old_name(): ...\n"})
        ingest_into(product, folder)
        wait_until(lambda: places(product, folder, "old_name") == ["src/app.py"])
        (folder / "src/app.py").write_text("def new_name_here(): ...\n")
        until_at(product, folder, "new_name_here", "src/app.py")
        write_files(folder, {"src/deep/more.py": "def more(): ...\n"})
        until_at(product, folder, "def more", "src/deep/more.py")
        shutil.rmtree(folder / "src/deep")
        until_at(product, folder, "def more")


def test_a_folder_that_was_empty(product: Product, repo: Path) -> None:
    (repo / "later").mkdir()
    (repo / "later/deep").mkdir()
    write_files(repo, {"src/first.py": "def first(): ...\n"})
    until_at(product, repo, "def first", "src/first.py")
    write_files(repo, {"later/deep/second.py": "def second(): ...\n"})
    until_at(product, repo, "def second", "later/deep/second.py")


def test_what_is_left_out_starts_no_runs(product: Product, repo: Path) -> None:
    """A log that is written all the time, and a build."""
    write_files(repo, {".gitignore": "*.log\nbuilt/\n"})
    generations = []
    for number in range(11):
        write_files(repo, {"run.log": f"{number}\n" * 9, f"built/a{number}.py": "x = 1\n"})
        # At once: a file that is written in two steps may be ingested after the first.
        write_files(repo.parent, {"on.py": f"def on_{number}(): ...\n"})
        (repo.parent / "on.py").replace(repo / "src/on.py")
        until_at(product, repo, f"on_{number}", "src/on.py")
        generations.append(generation(product, repo))
    assert generations == [*range(generations[0], generations[0] + 11)]


def test_a_name_that_is_not_utf8(product: Product, repo: Path) -> None:
    """The kernel's word ends there; the folder is looked at instead."""
    Path(os.fsdecode(os.fsencode(repo) + b"/src/\xff.py")).write_text("def odd(): ...\n")
    write_files(repo, {"src/even.py": "def even(): ...\n"})
    until_at(product, repo, "def even", "src/even.py")
    (repo / "src/even.py").write_text("def uneven(): ...\n")
    until_at(product, repo, "def uneven", "src/even.py")


def test_a_folder_with_a_name_in_it_that_is_not_utf8(product: Product, repo: Path) -> None:
    """It ends the watching of no folder."""
    away = write_files(repo.with_name("moved_in"), {"even.py": "def inside(): ...\n"})
    (away / os.fsdecode(b"\xff")).mkdir()
    away.rename(repo / "moved")
    until_at(product, repo, "def inside", "moved/even.py")
    (repo / "src/app.py").write_text("def after(): ...\n")
    until_at(product, repo, "def after", "src/app.py")


def test_a_file_system_that_does_not_answer(tmp_path: Path) -> None:
    """It is told of, holds up no other folder, and is looked at again when it answers."""
    hangs = tmp_path / "hangs"
    backing = write_files(tmp_path / "backing", {"src/app.py": "def old_name(): ...\n"})
    with running(tmp_path, CODEINFO_WATCH="auto") as product:
        away = product.repos / "away"
        here = write_files(product.repos / "here", {"src/app.py": "def near(): ...\n"})
        with mounted("tests.power.hanging", backing, away, hangs):
            for folder in (away, here):
                ingest_into(product, folder)
            wait_until(lambda: "as soon as they are told" in drawer(product, here))
            wait_until(lambda: "does not tell of changes." in drawer(product, away))
            wait_until(lambda: "stale" not in answer(product, away, "def"))
            hangs.touch()
            wait_until(lambda: "Its folder does not answer." in drawer(product, away))
            (here / "src/app.py").write_text("def nearer(): ...\n")
            until_at(product, here, "def nearer", "src/app.py")
            assert answer(product, away, "old_name")["stale"] == (
                "away: Its folder does not answer."
            )
            hangs.unlink()
            (away / "src/app.py").write_text("def new_name(): ...\n")
            until_at(product, away, "def new_name", "src/app.py")
            assert "does not answer" not in drawer(product, away)


def test_a_lock_of_git_that_a_crash_has_left(product: Product, repo: Path) -> None:
    lock = repo / ".git/index.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    for number in range(3):
        write_files(repo, {"src/app.py": f"def after_{number}(): ...\n"})
        until_at(product, repo, f"def after_{number}", "src/app.py")


def test_a_file_beside_the_folders_by_looking(tmp_path: Path) -> None:
    """It is the only one that is new."""
    with running(tmp_path, CODEINFO_WATCH="poll") as product:
        folder = write_files(product.repos / "polled", {"src/app.py": "def old_name(): ...\n"})
        ingest_into(product, folder)
        wait_until(lambda: places(product, folder, "old_name") == ["src/app.py"])
        write_files(folder, {"top.py": "def top(): ...\n"})
        until_at(product, folder, "def top", "top.py")
        assert (counts(product)["files"], counts(product)["chunks"]) == (2, 2)


def test_an_index_that_was_empty(tmp_path: Path) -> None:
    """Without a chunk, no embedding model is locked."""
    with running(tmp_path, CODEINFO_WATCH="poll") as product:
        folder = write_files(product.repos / "emptied", {"src/app.py": "def old_name(): ...\n"})
        ingest_into(product, folder)
        (folder / "src/app.py").write_text("")
        wait_until(lambda: counts(product)["chunks"] == 0)
        (folder / "src/app.py").write_text("def new_name(): ...\n")
        wait_until(lambda: counts(product)["chunks"] == 1)
        assert places(product, folder, "new_name") == ["src/app.py"]
