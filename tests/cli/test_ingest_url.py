"""`codeinfo ingest URL`: the server fetches the repository, each time."""

import json
from collections.abc import Iterator

import pytest

from tests.cli.command import Command, command
from tests.support.git import commit_all, git, init
from tests.support.git_servers import HOST, GitServer, https_server
from tests.support.ingested import write_files

pytestmark = pytest.mark.door


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    folder = tmp_path_factory.mktemp("servers")
    repository = init(folder / "served/harbour", "-b", "main")
    write_files(repository, {"quay.py": "def moor(ship):\n    return ship\n"})
    commit_all(repository)
    with https_server(folder / "served", folder / "keys") as running:
        yield running


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, server: GitServer) -> Iterator[Command]:
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(f"[http]\n\tsslCAInfo = {server.authorities}\n")
    with command(home, CODEINFO_CLONE_HOSTS=HOST) as made:
        yield made


def test_a_url_is_ingested_and_ingested_again(user: Command, server: GitServer) -> None:
    url = f"{server.url}/harbour@main"
    user.run("ingest", url)
    found = user.run("search", "moor", "a", "ship", "-R", "harbour@main").stdout
    assert "quay.py" in found
    before = len(server.requests)
    status = json.loads(user.run("ingest", url, "--json").stdout)
    assert status["state"] == "skipped"
    assert len(server.requests) > before


def test_a_ref_of_a_folder_is_ingested_beside_it(user: Command) -> None:
    folder = init(user.home / "src/pier", "-b", "main")
    write_files(folder, {"pier.py": "def land(ship):\n    return ship\n"})
    commit_all(folder)
    git(folder, "branch", "old/way")
    write_files(folder, {"pier.py": "def leave(ship):\n    return ship\n"})
    user.run("ingest", cwd=folder)
    name = "pier@old~way"
    said = user.run("ingest", ".@old/way", "--description", "As it was", cwd=folder).stdout
    assert f"{name}: 1 file" in said
    assert "land" in user.run("search", "land a ship", "-R", name, cwd=folder).stdout
    assert "leave" in user.run("search", "leave with a ship", "-R", "pier", cwd=folder).stdout
    # Again: it keeps its name and description, and nothing has changed.
    status = json.loads(user.run("ingest", f"{folder}@old/way", "--json").stdout)
    assert status["state"] == "skipped"
    roots = user.json("repos")["repos"]
    (root,) = [one for one in roots if one["id"] == name]
    assert root["description"] == "As it was"
    refused = user.run("ingest", ".@nothing", cwd=folder, status=2)
    assert "no branch, tag or commit named 'nothing'" in refused.stderr
    # A folder with the name of the user before a host is no repository.
    (folder / "git").mkdir()
    refused = user.run("ingest", "git@127.0.0.1:a/b", cwd=folder, status=2)
    assert "CLONE" in refused.stderr or "not fetched" in refused.stderr
    refused = user.run("ingest", ".@a..b", cwd=folder, status=2)
    assert "cannot be a branch, a tag or a commit" in refused.stderr


def test_a_url_that_cannot_be_fetched_is_told(user: Command, server: GitServer) -> None:
    refused = user.run("ingest", "http://github.com/a/b", status=2)
    assert "Repositories are fetched from https://HOST/PATH" in refused.stderr
    refused = user.run("ingest", f"{server.url}/nothing", status=2)
    assert "The repository was not fetched: repository" in refused.stderr
