"""A folder of a thousand levels costs a bounded number of descriptors and is left out by reason."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.core.errors import InvalidInput
from apps.index.root_directory import MAX_DEPTH, TOO_DEEP, read_file
from apps.ingest.discovery.discovery import discover
from tests.ingest.discovered import names, reasons
from tests.support.git import commit_all, git, init
from tests.support.ingested import write_files

pytestmark = pytest.mark.door

LEVELS = 1_000
DEEPEST_KEPT = "d/" * MAX_DEPTH + "a.py"

# Descriptors run out long before the levels do. A socket is opened for each file that is found, as
# requests would while an ingest runs; how many descriptors are open then is what is printed.
RUN = """
import django; django.setup()
import os, resource, socket, sys; from pathlib import Path
from apps.ingest.discovery.discovery import discover
before = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (before + 40, before + 40))
most = 0
def check():
    global most
    for end in socket.socketpair():
        end.close()
    most = max(most, len(os.listdir("/proc/self/fd")) - before)
found = discover(Path(sys.argv[1]), check=check)
print(len(found.files), len(found.skipped), most)
"""


@pytest.fixture
def deep(folder: Path) -> Iterator[Path]:
    """1,000 levels, with a file in each of the upper 200 and in the last."""
    root = folder / "root"
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for level in range(LEVELS + 1):
        if level <= 200 or level == LEVELS:
            file = os.open("a.py", os.O_WRONLY | os.O_CREAT, dir_fd=here)
            os.write(file, b"x = 1\n")
            os.close(file)
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    yield root
    # Python's own way would take a descriptor for each level.
    subprocess.run(["rm", "-rf", root], check=True)


def in_a_process_with_few_descriptors(root: Path) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, root], capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-500:]
    return [int(number) for number in done.stdout.split()]


@pytest.mark.fault("Slow patterns and deep folders")
def test_a_walk_holds_few_descriptors(deep: Path) -> None:
    files, skipped, most = in_a_process_with_few_descriptors(deep)
    assert (files, skipped) == (MAX_DEPTH + 1, 1)
    assert most <= 32


@pytest.mark.fault("Slow patterns and deep folders")
def test_so_does_a_look_at_what_git_tracks(deep: Path) -> None:
    git(init(deep), "add", ".")
    files, skipped, most = in_a_process_with_few_descriptors(deep)
    assert (files, skipped) == (MAX_DEPTH + 1, 1)
    assert most <= 32


@pytest.mark.fault("Slow patterns and deep folders")
def test_what_is_too_deep_is_listed_with_the_reason(deep: Path) -> None:
    found = discover(deep)
    assert names(found)[-1] == DEEPEST_KEPT
    assert reasons(found) == {"d/" * (MAX_DEPTH + 1): TOO_DEEP}
    assert read_file(deep, DEEPEST_KEPT) == b"x = 1\n"
    with pytest.raises(InvalidInput, match=TOO_DEEP):
        read_file(deep, f"d/{DEEPEST_KEPT}")


def test_files_of_deep_folders_are_found_in_any_order(folder: Path) -> None:
    """Of the folders below those that stay open, the one at hand is opened again."""
    branches = ["a/" * 50, "a/" * 40 + "b/" * 10, "a/" * 28 + "c/" * 30, "b/" * 60, ""]
    files = {f"{branch}{name}.py": f"{branch}{name}" for branch in branches for name in "xy"}
    write_files(folder, files)
    assert set(names(discover(folder))) == set(files)
    for path, content in files.items():
        assert read_file(folder, path) == content.encode()
    commit_all(init(folder))
    assert set(names(discover(folder))) == set(files)
