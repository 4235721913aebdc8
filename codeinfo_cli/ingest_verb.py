"""`codeinfo ingest`: ingest a folder, and show how far it is."""

import json
import os
import re
import select
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import quote, unquote

import click

from codeinfo_cli import options, terminal
from codeinfo_cli.client import Client, connected
from codeinfo_cli.errors import FAILED, INTERRUPTED, NOTHING, CliError
from codeinfo_cli.terminal import counted, note, out, visible

POLL_SECONDS = 0.3
# Cancel, background, watch on
CHOICES = ("c", "b", "w")
# A URL, or `git@host:path` (the server checks it).
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//|:)|[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:")
ENDS = ("completed", "skipped", "cancelled", "error", "needs_confirmation")


@click.command()
@click.argument("path", default=".", metavar="[PATH]", type=click.Path())
@click.option("-n", "--name", metavar="NAME", help="By default the name of the folder.")
@click.option("--description", metavar="TEXT", help="What is in it, for models.")
@click.option("--model", metavar="ID", help="The embedding model of the first repository.")
@click.option("--dry-run", is_flag=True, help="Count the files and passages only.")
@click.option("--plain-folder", is_flag=True, help="All files, whatever git knows of them.")
@click.option("--force", is_flag=True, help="Even if most of the files have disappeared.")
@click.option("-b", "--background", is_flag=True, help="Start it, and do not wait.")
@options.yes
@options.as_json
def ingest(
    path: str,
    name: str | None,
    description: str | None,
    model: str | None,
    dry_run: bool,
    plain_folder: bool,
    force: bool,
    background: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Reads a folder into the index; of one that is ingested already, what has changed since.

    PATH may be the URL of a git repository, https://HOST/PATH or git@HOST:PATH, perhaps with @REF:
    a branch, a tag or a commit. The server fetches it, each time. FOLDER@REF takes those from the
    repository in a folder, and leaves its work tree alone.

    A folder outside those that may be ingested is added to them, if you agree (--yes).

    Ctrl-C asks whether to cancel the run or to leave it running in the background. Where nobody can
    be asked, it cancels. A run that a signal leaves behind goes on. The exit status is 1 if the run
    was cancelled or needs --force, and 2 if it failed.
    """
    folder, ref = _place(path)
    wanted = {"name": name, "description": description, "model": model}
    flags = {"dryRun": dry_run, "plainFolder": plain_folder}
    with connected() as client, _ctrl_c() as pressed:
        start = _Start(client, folder, ref, wanted, flags, force=force, yes=yes)
        body = start.run()
        run_id = json.loads(body)["runId"]
        if background:
            if as_json:
                terminal.json_out(body)
            else:
                out(
                    f"Ingesting {visible(start.place)} in the background; codeinfo status shows it."
                )
            return
        ended = follow(client, run_id, start.name, pressed)
    if as_json:
        terminal.json_out(ended)
    status = _report(json.loads(ended), start.name, quiet=as_json, dry_run=dry_run)
    if status:
        sys.exit(status)


def _place(path: str) -> tuple[str, str]:
    """Return a folder or URL, and the ref of a folder; "" for none."""
    if os.path.exists(path):
        return _folder(path), ""
    if URL.match(path):
        return path, ""
    before, at, _ = path.rpartition("@")
    while at:
        if os.path.isdir(before or ".") and not before.endswith("/"):
            return _folder(before or "."), path[len(before) + 1 :]
        before, at, _ = before.rpartition("@")
    return _folder(path), ""


def _folder(path: str) -> str:
    folder = os.path.realpath(os.path.expanduser(path))
    if not os.path.isdir(folder):
        raise CliError(f"{path} is not a folder.", "NOT_DIRECTORY")
    if not _is_utf8(folder):
        raise CliError(f"The path {folder} is not UTF-8: rename it.", "INVALID_PATH")
    return folder


def _is_same(root: Mapping[str, Any], folder: str, ref: str) -> bool:
    """Whether a folder or URL, at a ref of a folder, is ingested as a root."""
    if ref:
        return unquote(root["url"] or "") == f"file://{folder}@{ref}"
    return folder in (root["path"], root["url"])


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


class _Start:
    """Starts the run of a folder, or of a ref of its repository.

    place: as the server takes it
    """

    def __init__(
        self,
        client: Client,
        folder: str,
        ref: str,
        wanted: Mapping[str, str | None],
        flags: Mapping[str, bool],
        *,
        force: bool,
        yes: bool,
    ) -> None:
        self._client = client
        self._folder = folder
        self._wanted = {key: value for key, value in wanted.items() if value is not None}
        self._flags = {key: True for key, value in flags.items() if value}
        self._force = force
        self._yes = yes
        roots = json.loads(client.get("/ingest/roots"))["roots"]
        self._known = next((root for root in roots if _is_same(root, folder, ref)), None)
        # The path of its run is that of the clone.
        self.place = self._known["path"] if self._known else f"{folder}@{ref}" if ref else folder
        # The server names a new repository that it fetches.
        self._names_itself = bool(ref or URL.match(folder)) and not self._known
        self.name = str(self._wanted.get("name") or (self._known or {}).get("name") or "")
        if not self.name and not URL.match(folder):
            self.name = os.path.basename(folder) + (f"@{ref.replace('/', '~')}" if ref else "")
        self.name = self.name or folder

    def run(self) -> bytes:
        """Start it. A folder that may not be ingested yet is allowed first, if the user agrees."""
        try:
            return self._post()
        except CliError as error:
            if error.code == "BUSY" and (run := self._in_progress()):
                note(f"An ingest of {self.place} is in progress already.")
                return json.dumps({"runId": run["runId"]}).encode()
            if error.code != "OUTSIDE_BASE":
                raise
            self._allow(error)
        return self._post()

    def _in_progress(self) -> dict[str, Any] | None:
        runs = json.loads(self._client.get("/ingest/runs"))["runs"]
        return next((run for run in runs if run["path"] == self.place), None)

    def _post(self) -> bytes:
        if self._known and not self._wanted and not self._flags:
            path = f"/ingest/reembed/{quote(self.place, safe='')}"
            return self._client.post(path, {"force": self._force})
        known = self._known or {}
        is_named = "name" in self._wanted or not self._names_itself
        body = {
            "path": self.place,
            **({"name": self.name} if is_named else {}),
            "model": self._wanted.get("model") or self._model(known),
            "description": self._wanted.get("description", known.get("description")),
            "force": self._force,
            **self._flags,
        }
        return self._client.post("/ingest/start", body)

    def _model(self, known: Mapping[str, Any]) -> str:
        """Return the model of the index, else the first of the list, which is the default."""
        models = json.loads(self._client.get("/ingest/models"))
        first = models["models"][0]["id"] if models["models"] else ""
        return str(models["lockedModelId"] or known.get("model") or first)

    def _allow(self, error: CliError) -> None:
        """Add the folder to those that may be ingested. Raises CliError if the user declines."""
        bases = json.loads(self._client.get("/ingest/bases"))
        if not bases["fixed"] and not self._yes:
            allowed = ", ".join(bases["bases"])
            note(f"{self._folder} is outside the folders that may be ingested: {allowed}.")
            if not terminal.is_interactive():
                error.next_step = "--yes allows it, now and later."
                raise error
            with _while_asking():
                agreed = click.confirm("Allow codeinfo to ingest it, now and later?", err=True)
            if not agreed:
                raise CliError("The folder was not added: nothing is ingested.", "DECLINED")
        self._client.post("/ingest/bases", {"path": self._folder})
        note(f"{self._folder} may be ingested from now on.")


def follow(client: Client, run_id: str, name: str, pressed: "SimpleQueue[None]") -> bytes:
    """Show a run until it ends. Return its status as JSON.

    pressed: has an item for each Ctrl-C

    Raises CliError at the end of a run that Ctrl-C has cancelled, or SystemExit if the user leaves
    it running.
    """
    from codeinfo_cli.progress import progress_of  # noqa: PLC0415 - imports rich

    with progress_of(name) as bar:
        while True:
            body = client.get(f"/ingest/status/{run_id}")
            status = json.loads(body)
            bar.show(status)
            if status["state"] in ENDS:
                return body
            if _was_pressed(pressed):
                with bar.paused():
                    _interrupted(client, run_id)
                    while not pressed.empty():
                        pressed.get()


def _was_pressed(pressed: "SimpleQueue[None]") -> bool:
    """Wait for Ctrl-C, POLL_SECONDS at most. Return whether it was pressed."""
    try:
        pressed.get(timeout=POLL_SECONDS)
    except Empty:
        return False
    return True


@contextmanager
def _ctrl_c() -> Iterator["SimpleQueue[None]"]:
    """Let Ctrl-C fill a queue, so that no run starts without a question about it.

    A signal handler must not wait for a lock that the interrupted code may have. An Event has such
    a lock; `SimpleQueue.put` is reentrant.
    """
    pressed: SimpleQueue[None] = SimpleQueue()
    with _on_ctrl_c(lambda *_: pressed.put(None)):
        yield pressed


@contextmanager
def _on_ctrl_c(handler: Callable[..., object]) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _while_asking() -> AbstractContextManager[None]:
    """Let Ctrl-C end a question."""
    return _on_ctrl_c(signal.default_int_handler)


def _interrupted(client: Client, run_id: str) -> None:
    """Ask what to do. Return to watch on."""
    choice = "c"
    if terminal.is_interactive():
        note("\nCancel the ingest (c), leave it running in the background (b), or watch on (w)?")
        try:
            with _while_asking():
                choice = _answer()
        except KeyboardInterrupt:
            choice = "c"
    if choice == "b":
        note("It goes on in the background; codeinfo status shows it.")
        sys.exit(0)
    if choice == "c":
        client.post(f"/ingest/cancel/{run_id}")
        message = "The ingest was cancelled; what was ingested before is unchanged."
        raise CliError(message, "CANCELLED", status=INTERRUPTED)


def _answer() -> str:
    """Return one of CHOICES. The end of stdin cancels.

    `input` would miss a Ctrl-C that comes while it prepares the terminal.
    """
    while True:
        sys.stderr.write("c, b or w: ")
        sys.stderr.flush()
        while not select.select([sys.stdin], [], [], POLL_SECONDS)[0]:
            pass
        line = sys.stdin.readline()
        if not line:
            return "c"
        if (answer := line.strip().lower()) in CHOICES:
            return answer


def _report(run: Mapping[str, Any], name: str, *, quiet: bool, dry_run: bool) -> int:
    """Write how a run ended. Return the exit status."""
    counts, state = run["counts"], run["state"]
    shown = visible(name)
    if state in ("completed", "skipped"):
        if not quiet:
            facts = f"{counted(counts['files'], 'file')}, {counted(counts['chunks'], 'passage')}"
            facts += " would be ingested" if dry_run else ""
            out(f"{shown}: {'nothing has changed' if state == 'skipped' else facts}")
        if left_out := run.get("leftOut"):
            untracked = counted(left_out["untracked"], "file")
            note(
                f"Left out, as git does not track them: {untracked}; ignored: "
                f"{left_out['ignored']:,}. --plain-folder ingests them too."
            )
        return 0
    message = run.get("lastError") or run.get("message") or state
    if state == "needs_confirmation":
        note(f"{message}\nIf that is right: codeinfo ingest --force")
        return NOTHING
    if state == "cancelled":
        note("The ingest was cancelled.")
        return NOTHING
    note(f"The ingest of {name} failed: {message}")
    return FAILED
