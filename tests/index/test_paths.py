"""Where files are: the container's path and the host's (docs/contract.md §4.5 and its traps)."""

from collections.abc import Callable

import pytest

from apps.index.models import Root
from apps.index.paths import UNMAPPED, MappedPath, map_path

NESTED = "/data/team/service"


@pytest.mark.parametrize(
    ("root", "host_dir", "container", "host"),
    [
        ("/data/repo", "", "/data/repo/src/a.py", "/data/repo/src/a.py"),
        ("/data/repo", "/home/me/code", "/data/repo/src/a.py", "/home/me/code/repo/src/a.py"),
        (NESTED, "/home/me/code", f"{NESTED}/src/a.py", "/home/me/code/team/service/src/a.py"),
        ("/data", "/home/me/code/", "/data/src/a.py", "/home/me/code/src/a.py"),
        ("/srv/repo", "/home/me/code", "/srv/repo/src/a.py", "/srv/repo/src/a.py"),
        ("/database/repo", "/home/me", "/database/repo/src/a.py", "/database/repo/src/a.py"),
    ],
)
def test_only_paths_below_data_are_mapped(
    configure: Callable[..., None], root: str, host_dir: str, container: str, host: str
) -> None:
    configure(host_ingest_dir=host_dir)
    assert map_path(Root(path=root), "src/a.py") == MappedPath(container, host)


def test_only_a_container_without_the_setting_has_a_warning(
    configure: Callable[..., None],
) -> None:
    configure(in_container=True, host_ingest_dir="")
    assert map_path(Root(path="/data/repo"), "a.py").warning == UNMAPPED
    configure(in_container=True, host_ingest_dir="/home/me")
    assert map_path(Root(path="/data/repo"), "a.py").warning is None
    configure(in_container=False, host_ingest_dir="")
    assert map_path(Root(path="/data/repo"), "a.py").warning is None


def test_the_root_itself_has_a_path() -> None:
    assert map_path(Root(path="/srv/repo")).host_path == "/srv/repo"
