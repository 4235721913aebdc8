"""Repositories on servers of this machine, and a client that may fetch from them."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.discovery.own_data import clones_folder
from tests.support.git import commit_all, git, init
from tests.support.git_servers import HOST, GitServer, https_server
from tests.support.index import index, repo
from tests.support.ingested import write_files

__all__ = ["index", "repo"]

Configure = Callable[..., None]


@pytest.fixture
def served(folder: Path) -> Path:
    """A repository on a server, with a branch `side/way` and a tag `v1`."""
    repository = init(folder / "served/harbour", "-b", "main")
    write_files(repository, {"quay.py": "def moor(ship):\n    return ship\n"})
    commit_all(repository)
    git(repository, "tag", "v1")
    git(repository, "checkout", "-qb", "side/way")
    write_files(repository, {"side.py": "def sail(ship):\n    return ship\n"})
    commit_all(repository)
    git(repository, "checkout", "-q", "main")
    return repository


@pytest.fixture
def server(
    served: Path, folder: Path, configure: Configure, monkeypatch: Any
) -> Iterator[GitServer]:
    """An HTTPS server of `served`, which codeinfo may fetch from, and whose key it trusts."""
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with https_server(served.parent, folder / "keys") as running:
        settings = home / ".gitconfig"
        settings.write_text(f"[http]\n\tsslCAInfo = {running.authorities}\n")
        configure(
            clone_hosts=(HOST,),
            git_config=settings,
            xdg_config_home=home / ".config",
        )
        yield running
    shutil.rmtree(clones_folder(), ignore_errors=True)
