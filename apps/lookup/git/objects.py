"""Runs git so that nothing of a repository but its objects has an effect.

git obeys what it finds in a repository: its configuration, attributes, hooks, replaced objects and
references. So it runs in an empty bare repository of ours, which only borrows the objects. It gets
no variables of codeinfo and of the user, full object ids instead of names, and limits of time,
memory and output.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from apps.core.concurrency.computed import TimedOut, Work, computing
from apps.core.errors import NotFound, Unavailable
from apps.core.system import programs
from apps.ingest.discovery.checkout import checkout
from apps.ingest.discovery.refusal import refused
from apps.ingest.discovery.repository import Repository, common_dir
from apps.ingest.remote.bare import boundary_of, make_bare
from apps.ingest.remote.lenders import check_lenders
from apps.lookup.git.graphs import file_in, graph_of, is_due, quoted, write_later

# Of one answer; git needs 2 s for the blame of 3,000 lines with 39,000 commits.
SECONDS = 10.0
SLOW = 0.1  # seconds of all commands of an answer
# The address space holds the packs, too, as far as git maps them.
MAX_MEMORY_KB = 4 << 20
MAX_OUTPUT = 32_000_000
NOT_FOUND = 1  # what `rev-parse` ends with if nothing has the name
MAX_REASON = 200  # characters of what git says
# The shell sets the limits before git starts. A system without one of them goes on.
LIMITED = f'ulimit -t {SECONDS:.0f}; ulimit -c 0; ulimit -v {MAX_MEMORY_KB} 2>/dev/null; exec "$@"'
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
PROMISED = "It is a partial clone: `git fetch --refetch --filter=` brings what is missing."


@dataclass(frozen=True)
class Git:
    """git, for the objects of one repository.

    head: id of the commit that is checked out
    boundary: ids of the commits of a shallow clone whose parents are not there; empty for others
    """

    repository: Repository
    head: str
    boundary: frozenset[str]
    _program: str
    _folder: str
    _work: Work
    _graph: Path  # folder of its graph of commits
    _times: list[float] = field(default_factory=list)  # seconds of each command

    def run(self, *arguments: str, data: bytes = b"") -> bytes:
        """Run a command of git and return its output. Raises Unavailable GIT_FAILED if it fails,
        and as `Work.check`.

        arguments: names of objects are full ids, paths are literal
        data: its standard input
        """
        return self._checked(arguments, data).stdout

    def object_id(self, expression: str) -> str:
        """Return the id of an expression that begins with hexadecimal digits; "" for none. Raises
        as `run`."""
        done = self._checked(("rev-parse", "--verify", "--quiet", expression), b"", NOT_FOUND)
        found = done.stdout.strip()
        return found.decode() if _ID.fullmatch(found) else ""

    def _checked(
        self, arguments: tuple[str, ...], data: bytes, allowed: int = 0
    ) -> "subprocess.CompletedProcess[bytes]":
        done = self._run(arguments, data)
        if done.returncode not in (0, allowed) and file_in(self._graph).is_file():
            done = self._run(arguments, data, with_graph=False)
            if done.returncode in (0, allowed):
                # It is damaged.
                file_in(self._graph).unlink(missing_ok=True)
        if done.returncode not in (0, allowed):
            raise self._failed(done)
        return done

    def _run(
        self, arguments: tuple[str, ...], data: bytes, *, with_graph: bool = True
    ) -> "subprocess.CompletedProcess[bytes]":
        command = (self._program, "--no-pager", "--literal-pathspecs", *arguments)
        self._work.check()
        began = time.monotonic()
        try:
            return programs.run(
                ("/bin/sh", "-c", LIMITED, "sh", *command),
                env={**(self._lent if with_graph else {}), **self._environment},
                cwd=self._folder,
                data=data,
                seconds=SECONDS,
                most_bytes=MAX_OUTPUT,
                started=self._work.kills,
            )
        except programs.OutputTooLarge as error:
            raise refused("cannot be read: git says too much") from error
        except subprocess.TimeoutExpired as error:
            raise TimedOut(f"It took more than {SECONDS:g} seconds.", retryable=False) from error
        finally:
            self._times.append(time.monotonic() - began)
            # A program that was killed has ended for that reason.
            self._work.check()

    def prepare(self) -> None:
        """Make later answers about the repository fast, if this one was slow. git uses no graph
        for a shallow clone."""
        if sum(self._times) > SLOW and not self.boundary and is_due(self._graph):
            write_later(self._program, self._environment, self.head, self._graph)

    @property
    def _lent(self) -> Mapping[str, str]:
        """The variable with the graph, if there is one."""
        lent = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(self._graph)}
        return lent if file_in(self._graph).is_file() else {}

    @property
    def _environment(self) -> Mapping[str, str]:
        return {
            "GIT_DIR": self._folder,
            "GIT_OBJECT_DIRECTORY": str(common_dir(self.repository.git_dir) / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": self._folder,
            "LC_ALL": "C.UTF-8",
        }

    def _failed(self, done: "subprocess.CompletedProcess[bytes]") -> Unavailable:
        """The error with what git says, a line, or why objects are missing."""
        packs = common_dir(self.repository.git_dir) / "objects/pack"
        if any(packs.glob("*.promisor")):
            return refused(f"cannot be read: objects are missing. {PROMISED}")
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1][:MAX_REASON] if lines else f"git ended with {done.returncode}"
        return refused(f"cannot be read: {reason}")


@contextmanager
def opened(repository: Repository) -> Iterator[Git]:
    """Have git ready for a repository, for SECONDS.

    Raises Unavailable GIT_MISSING without the program, GIT_FAILED if the repository is refused,
    NotFound NO_HISTORY if it has no commit, and as `computing`.
    """
    # A relative folder would be one of the current folder.
    folders = filter(os.path.isabs, os.get_exec_path())
    program = shutil.which("git", path=os.pathsep.join(folders))
    if program is None:
        message = "The program git is not installed, or not in PATH: histories need it."
        raise Unavailable(message, code="GIT_MISSING", retryable=False)
    common = common_dir(repository.git_dir)
    if (common / "reftable").exists():
        raise refused("has its references in a reftable, which codeinfo does not read")
    head = checkout(repository).commit
    if not head:
        raise NotFound("The git repository has no commit yet.", code="NO_HISTORY")
    check_lenders(repository)
    with computing(SECONDS) as work, TemporaryDirectory(prefix="codeinfo-git-") as folder:
        boundary = boundary_of(common)
        make_bare(Path(folder), head, boundary)
        git = Git(repository, head, boundary, program, folder, work, graph_of(common))
        try:
            yield git
        finally:
            git.prepare()
