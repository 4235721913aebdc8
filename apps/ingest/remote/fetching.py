"""Fetches a repository with git, and checks its files out.

git runs in a folder of ours that it has made itself, with no configuration of the system, the user
and the repository but what is here: no hooks, filters, submodules and redirects. What a server
sends is checked (`fsck`), and limited in size and time. The objects of a repository of this machine
are borrowed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.utils import timezone

from apps.core.errors import Unavailable
from apps.core.system import disk, posix, programs
from apps.index.models import Clone
from apps.index.types import Check
from apps.ingest.remote import credentials
from apps.ingest.remote.address import RemoteAddress, read
from apps.ingest.remote.bare import NO_HEAD, config_for, make_bare, write_boundary
from apps.ingest.remote.local import Source, source_of
from apps.ingest.remote.network import addresses_of, pinned

SECONDS = 900.0  # of one command of git
MAX_BYTES = 2 << 30  # of the history; a larger one is fetched without its past
MAX_TREE_BYTES, MAX_FILES = 4 << 30, 500_000  # of what is checked out
MAX_MEMORY_KB = 4 << 20
BLOCK = 512  # bytes; the unit of `ulimit -f`
MAX_OUTPUT = 100_000_000  # of the list of MAX_FILES
MAX_REASON = 300  # characters of what git says
# A server that sends less for so long is given up.
MIN_SPEED, SLOW_SECONDS = 1_000, 30
LEFT = (
    *("*.lock", "refs/codeinfo/*.lock", "objects/pack/tmp_*", "config.worktree", "commondir"),
    *("info/grafts", "objects/info/alternates"),
)
# Before those of the repository, which could have its texts converted: that multiplies their size,
# and takes what iconv has for any encoding.
ATTRIBUTES = b"* -text -ident -filter -working-tree-encoding\n"
# The first version that connects to checked addresses alone (http.curloptResolve).
GIT = (2, 37)
FETCHED = "refs/codeinfo/fetched"
LIMITED = 'ulimit -f {0}; ulimit -c 0; ulimit -v {1} 2>/dev/null; exec "$@"'
_PROGRESS = re.compile(rb"(?:remote: )?([A-Z][a-z]{2,20} [a-z]{2,20}): +(\d+)%")
_ERROR = re.compile(r"(?:fatal|error): (.+)")
# What old commits of well-known repositories have, and nobody can be harmed with.
HARMLESS = (
    *("badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingEmail"),
    *("missingNameBeforeEmail", "missingSpaceBeforeDate", "missingSpaceBeforeEmail"),
    *("zeroPaddedDate", "zeroPaddedFilemode", "unknownType"),
)
SETTINGS = {
    "advice.detachedHead": "false",
    "core.attributesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.bigFileThreshold": "8m",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.logAllRefUpdates": "false",
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",
    "gc.autoDetach": "false",
    "http.followRedirects": "false",
    "maintenance.autoDetach": "false",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
    **{f"fetch.fsck.{name}": "ignore" for name in HARMLESS},
}


class _OverLimit(Unavailable):
    """A command exceeds MAX_BYTES or SECONDS."""

    code = "CLONE_FAILED"


def fetch(clone: Clone, tell: Callable[[str], None], check: Check) -> None:
    """Fetch a clone and check out what its ref means now. A history that exceeds the limits is
    fetched without its past.

    tell: called with what is being done, often
    check: called often; what it raises ends the fetch

    Raises InvalidInput URL_REFUSED, Unavailable CLONE_FAILED, GIT_MISSING or GIT_FAILED, and a full
    disk's. What was checked out before stays then, unless that is what failed.
    """
    Clone.objects.filter(id=clone.id).update(tried_at=timezone.now())
    remote = read(clone.url)
    tell("Fetching")
    git = _Git(Path(clone.path), _program(), remote, _environment(remote), tell, check)
    source = remote.url, remote.ref or "HEAD"
    if remote.scheme == "file":
        git.borrow(source_of(remote))
    elif git.is_complete:
        git.restore()
        git.fetch(*source, is_shallow=(git.git_dir / "shallow").is_file())
    else:
        git.clone(*source)
    git.check_out()


@dataclass(frozen=True)
class _Git:
    """git, for one clone."""

    folder: Path
    program: str
    remote: RemoteAddress
    environment: Mapping[str, str]
    tell: Callable[[str], None]
    check: Check

    @property
    def git_dir(self) -> Path:
        return self.folder / ".git"

    @property
    def is_complete(self) -> bool:
        """Whether it was checked out once."""
        return (self.git_dir / "index").is_file()

    def clone(self, url: str, ref: str) -> None:
        """Make the repository, and fetch into it."""
        try:
            self._begin()
            self.fetch(url, ref, is_shallow=False)
        except _OverLimit:
            self._begin()
            self.fetch(url, ref, is_shallow=True)

    def _begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.git_dir.mkdir(parents=True, mode=0o700)
        make_bare(self.git_dir, "")
        self._write_attributes()

    def restore(self, *, is_sha256: bool = False) -> None:
        """Delete what a git that was killed has left, and what an agent that works in the files may
        have written for git to obey."""
        for pattern in LEFT:
            for file in self.git_dir.glob(pattern):
                file.unlink()
        config = config_for(is_sha256=is_sha256)
        posix.replace_file(self.git_dir / "config", config.encode())
        self._write_attributes()

    def borrow(self, source: Source) -> None:
        """Have the objects of a repository of this machine, and know what is wanted of it."""
        if not self.is_complete:
            self._begin()
        self.restore(is_sha256=source.is_sha256)
        (self.git_dir / "objects/info").mkdir(exist_ok=True)
        (self.git_dir / "refs/codeinfo").mkdir(exist_ok=True)
        alternates = os.fsencode(source.objects) + b"\n"
        posix.replace_file(self.git_dir / "objects/info/alternates", alternates)
        write_boundary(self.git_dir, source.boundary)
        # The commit that was checked out before may be gone.
        posix.replace_file(self.git_dir / "HEAD", NO_HEAD.encode())
        commit = self.run("rev-parse", "--verify", f"{source.name}^{{commit}}")
        posix.replace_file(self.git_dir / FETCHED, commit)

    def _write_attributes(self) -> None:
        (self.git_dir / "info").mkdir(exist_ok=True)
        posix.replace_file(self.git_dir / "info/attributes", ATTRIBUTES)

    def fetch(self, url: str, ref: str, *, is_shallow: bool) -> None:
        """Fetch a ref, and nothing else. Raises _OverLimit."""
        depth = ("--depth=1",) if is_shallow else ()
        options = ("--progress", "--no-tags", "--no-write-fetch-head", *depth)
        self.run("fetch", *options, "--", url, f"+{ref}:{FETCHED}")

    def check_out(self) -> None:
        """Replace the files by those of what was fetched."""
        listed = self.run("ls-tree", "-r", "-l", "-z", FETCHED + "^{commit}").split(b"\0")
        sizes = [line.partition(b"\t")[0].split()[3] for line in listed if line]
        # What git says of an object that is not there.
        if missing := sizes.count(b"BAD"):
            raise _failed(
                f"{missing:,} of its {len(sizes):,} files are not there, as in a partial clone: "
                "fetch it again without a filter (git fetch --refetch --no-filter)"
            )
        total = sum(int(size) for size in sizes if size != b"-")
        if len(listed) > MAX_FILES or total > MAX_TREE_BYTES:
            raise _failed(
                f"it has {len(listed) - 1:,} files of {total >> 20:,} MB: at most {MAX_FILES:,} "
                f"of {MAX_TREE_BYTES >> 20:,} MB are checked out"
            )
        self._drop_unreadable_index()
        self.run("checkout", "--force", "--detach", "--progress", FETCHED)
        # What a checkout that was killed has left, or somebody else.
        self.run("clean", "-ffdxq")

    def _drop_unreadable_index(self) -> None:
        """A loss of power may have damaged it; one with ids of another kind is no better."""
        try:
            self.run("ls-files", "--", "nothing")
        except _OverLimit:
            raise
        except Unavailable:
            (self.git_dir / "index").unlink(missing_ok=True)

    def run(self, *arguments: str) -> bytes:
        """Run a command of git, and return its output. Raises _OverLimit, and as `fetch`."""
        disk.check()
        largest = MAX_BYTES if arguments[0] == "fetch" else MAX_TREE_BYTES
        limited = LIMITED.format(largest // BLOCK, MAX_MEMORY_KB)
        folder, git_dir = str(self.folder), str(self.git_dir)
        places = {"GIT_DIR": git_dir, "GIT_WORK_TREE": folder, "HOME": git_dir}
        try:
            done = programs.run(
                ("/bin/sh", "-c", limited, "sh", self.program, "--no-pager", *arguments),
                env={**self.environment, **places},
                cwd=folder,
                data=b"",
                seconds=SECONDS,
                most_bytes=MAX_OUTPUT,
                on_stderr=self._on_stderr,
            )
        except programs.OutputTooLarge:
            raise _failed("git says too much") from None
        except subprocess.TimeoutExpired:
            raise _OverLimit(f"The fetch took more than {SECONDS:g} seconds.") from None
        if done.returncode:
            raise self._error(done)
        return done.stdout

    def _on_stderr(self, piece: bytes) -> None:
        """Tell how far git is; end it if it was cancelled, or if it fetches too much."""
        self.check()
        if found := _PROGRESS.findall(piece):
            what, percent = found[-1]
            self.tell(f"Fetching: {what.decode().lower()}, {percent.decode()} %")
        elif not piece:
            disk.check()
            if disk.size_of(self.git_dir) > MAX_BYTES:
                raise _over_size()

    def _error(self, done: "subprocess.CompletedProcess[bytes]") -> Exception:
        text = done.stderr.decode("utf-8", "replace")
        # The system ends a program whose file reaches its limit; the file stays.
        if "File too large" in text or disk.size_of(self.git_dir) > MAX_BYTES - BLOCK:
            return _over_size()
        return _failed(_reason(text, self.remote) or f"git ended with {done.returncode}")


def _reason(text: str, remote: RemoteAddress) -> str:
    """Return why git failed, in one line."""
    if "could not read Username" in text or "Authentication failed" in text:
        return (
            f"{remote.host} wants a login, or has no such repository. CODEINFO_CLONE_TOKEN has "
            "tokens, and the helper of your git configuration is asked"
        )
    if "Host key verification failed" in text:
        return f"the key of {remote.host} is not the one in ~/.ssh/known_hosts, or not there"
    if "Permission denied (" in text:
        return f"{remote.host} accepts none of the keys in ~/.ssh"
    if re.search(r"returned error: 30[1278]", text):
        return f"{remote.host} redirects to another address: use that one"
    if text.startswith("fatal: Needed a single revision"):
        return f"it has no commit {remote.ref!r}"
    lines = _ERROR.findall(text.replace("\r", "\n"))
    found = lines[0].strip() if lines else ""
    for secret in credentials.token_of(remote) or ():
        found = found.replace(secret, "***")
    return "".join(filter(str.isprintable, found))[:MAX_REASON].rstrip(".")


def _over_size() -> _OverLimit:
    return _OverLimit(f"The repository is larger than {MAX_BYTES >> 20:,} MB.")


def _failed(reason: str) -> Unavailable:
    return Unavailable(f"The repository was not fetched: {reason}.", code="CLONE_FAILED")


def _search_path() -> str:
    # A relative folder would be one of the current folder.
    return os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))


def _program() -> str:
    program = shutil.which("git", path=_search_path())
    if program is None:
        message = "The program git is not installed, or not in PATH: it fetches repositories."
        raise Unavailable(message, code="GIT_MISSING", retryable=False)
    done = programs.run((program, "version"), env={}, data=b"", seconds=60, most_bytes=1_000)
    version = re.match(rb"git version (\d+)\.(\d+)", done.stdout)
    if not version or tuple(map(int, version.groups())) < GIT:
        message = f"Repositories are fetched by git {GIT[0]}.{GIT[1]} or a later one: update git."
        raise Unavailable(message, code="GIT_MISSING", retryable=False)
    return program


def _environment(remote: RemoteAddress) -> Mapping[str, str]:
    """Return the variables of git for an address. Its host is resolved, and checked."""
    settings = {
        **SETTINGS,
        "http.lowSpeedLimit": str(MIN_SPEED),
        "http.lowSpeedTime": str(SLOW_SECONDS),
    }
    variables = {
        "GIT_ALLOW_PROTOCOL": remote.scheme,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
        "PATH": _search_path(),
    }
    if remote.scheme != "file":
        addresses = addresses_of(remote)
        settings["http.curloptResolve"] = pinned(remote, addresses)
        if remote.scheme == "ssh":
            variables["GIT_SSH_COMMAND"] = credentials.ssh_command(remote, addresses[0])
            variables["GIT_SSH_VARIANT"] = "ssh"
        else:
            login, secrets = credentials.for_https(remote, _search_path())
            settings |= login
            variables |= secrets
    variables["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables
