"""Graphs of commits, with which git answers about long histories in a tenth of the time.

git makes them (https://git-scm.com/docs/commit-graph), with a filter for each commit that tells
which paths it cannot have changed. A repository gets one in the data folder when an answer was
slow. It may be missing, old or damaged: then an answer is slow.
"""

import logging
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from apps.core.config import config
from apps.core.system import programs
from apps.ingest.remote.bare import make_bare

log = logging.getLogger("codeinfo.lookup")

# Time that git may take for one, and the age at which commits since then are worth another one.
SECONDS, MAX_AGE = 120, 86_400.0
MOST = 50  # repositories
MAX_BLOCKS = 500_000  # of 512 bytes; the graph of a million commits takes a third
# Filters of the first commits; the others have none.
FILTERS = 200_000
LOW_PRIORITY = f'ulimit -t {SECONDS}; ulimit -c 0; ulimit -f {MAX_BLOCKS}; exec nice -n 15 "$@"'

_writing = threading.Lock()
_failed: dict[Path, float] = {}  # when the last attempt failed, by folder


def graph_of(common: Path) -> Path:
    """The folder with the graph of a repository, as a folder of objects.

    common: the folder with its objects
    """
    name = sha256(os.fsencode(common)).hexdigest()[:32]
    return config().data_dir.absolute() / "commit-graphs" / name


def file_in(folder: Path) -> Path:
    return folder / "info/commit-graph"


def quoted(folder: Path) -> str:
    """A path as a variable of git holds it among others."""
    text = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def is_due(folder: Path) -> bool:
    """Whether there is no graph, or an old one, and none was tried in vain lately."""
    if time.time() - _failed.get(folder, 0) < MAX_AGE:
        return False
    try:
        return time.time() - file_in(folder).stat().st_mtime > MAX_AGE
    except OSError:
        return True


def write_later(command: str, env: Mapping[str, str], head: str, folder: Path) -> None:
    """Write a graph of the commits that lead to `head` in a thread, unless one is being written.

    command: git; env: its variables, for the repository
    folder: as `graph_of` returns it
    """
    if not _writing.acquire(blocking=False):
        return

    def write() -> None:
        try:
            with TemporaryDirectory(prefix="codeinfo-git-") as bare:
                _write(command, env, head, folder, Path(bare))
        except (OSError, subprocess.SubprocessError) as error:
            _failed[folder] = time.time()
            log.warning("no graph of commits", extra={"context": {"reason": str(error)}})
        finally:
            _writing.release()

    threading.Thread(target=write, name="commit-graph", daemon=True).start()


def _write(command: str, env: Mapping[str, str], head: str, folder: Path, bare: Path) -> None:
    make_bare(bare, head)
    own = bare / "objects"
    lent = {
        "GIT_DIR": str(bare),
        "GIT_OBJECT_DIRECTORY": str(own),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(Path(env["GIT_OBJECT_DIRECTORY"])),
    }
    arguments = ("--stdin-commits", "--changed-paths", f"--max-new-filters={FILTERS}")
    done = programs.run(
        ("/bin/sh", "-c", LOW_PRIORITY, "sh", command, "commit-graph", "write", *arguments),
        env={**env, **lent},
        cwd=str(bare),
        data=f"{head}\n".encode(),
        seconds=SECONDS,
        most_bytes=1_000_000,
    )
    done.check_returncode()
    _keep_few(folder.parent)
    file_in(folder).parent.mkdir(parents=True, exist_ok=True)
    new = folder / "new"
    shutil.copyfile(file_in(own), new)
    new.replace(file_in(folder))


def _keep_few(folder: Path) -> None:
    """Delete the oldest graphs, those of removed repositories among them."""
    with suppress(OSError):
        for old in sorted(folder.iterdir(), key=os.path.getmtime)[: -MOST + 1]:
            shutil.rmtree(old, ignore_errors=True)
