"""Ingests the folder that an agent works in, at its first call.

Nobody has chosen the folder: the agent was started there. So only what is clearly one project is
ingested, and a large one, or one that leaves the machine, after a question.
"""

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from apps.code.paths import MANIFESTS
from apps.core.errors import CodeinfoError
from apps.core.system import posix
from apps.embedding.catalogue import DEFAULT_MODEL
from apps.index import queries
from apps.index.models import IngestRun, Root
from apps.index.types import TERMINAL_STATES
from apps.ingest import folders, services
from apps.ingest.bases import bases
from apps.ingest.discovery.discovery import count_files
from apps.ingest.discovery.repository import find_repository
from apps.ingest.watching.kernel import is_near
from apps.ingest.worker.supervisor import supervisor

# More files than these need a question.
MAX_FILES = 20_000
# Folders whose questions are remembered.
MAX_REMEMBERED = 1_000

_lock = threading.Lock()
_remembered: dict[Path, "_Question"] = {}


@dataclass(frozen=True)
class FirstUse:
    """What comes of a folder's first use.

    run: its ingest
    refusal: why it is not ingested, a part of a sentence
    question: what the user can agree to; "" if that would not help
    is_new: whether the user is to be asked now: once is enough, also of calls that come at once
    """

    run: IngestRun | None = None
    refusal: str = ""
    question: str = ""
    is_new: bool = False


@dataclass
class _Question:
    """What is remembered of a folder that needs one.

    is_large: whether it has more than MAX_FILES, which takes long to count; None: not counted
    text: what the user was asked last
    """

    is_large: bool | None = None
    text: str = ""


def start(path: str, consent: str, *, can_ask: bool = False) -> FirstUse:
    """Start the ingest of the project that contains a folder, which no ingested folder does.

    consent: "auto", "ask": after a question in any case; "yes": the user has agreed
    can_ask: whether the caller asks the user if `is_new`
    """
    folder, refusal = _project(path)
    if folder is None:
        return FirstUse(refusal=refusal)
    last = IngestRun.objects.filter(path=str(folder), dry_run=False).order_by("-queued_at").first()
    if last and last.state not in TERMINAL_STATES and last.operation != IngestRun.Operation.REMOVE:
        return FirstUse(run=last)
    if last and (refusal := _ended(last)):
        return FirstUse(refusal=refusal)
    try:
        if consent != "yes" and (
            needed := _question(folder, always=consent == "ask", can_ask=can_ask)
        ):
            return needed
        # Of calls at once, each would find that no other had started it.
        with _lock:
            return FirstUse(run=services.start_next(str(folder)))
    except CodeinfoError as error:
        return FirstUse(refusal=error.message)


def expect(path: str) -> None:
    """Have a worker started if the first call from a folder will ingest it. Models think before
    they call."""
    folder, _ = _project(path)
    if folder is None or not is_near(queries.locked_model() or DEFAULT_MODEL):
        return
    if not IngestRun.objects.filter(path=str(folder), dry_run=False).exists():
        supervisor.expect()


def _project(path: str) -> tuple[Path | None, str]:
    """Return the folder to ingest, or why there is none: the work tree that contains a folder, else
    the folder itself if it has a manifest."""
    reason = "it is neither in a git work tree nor has it a manifest such as pyproject.toml"
    try:
        folder = folders.resolve(path)
        repository = find_repository(folder)
    except CodeinfoError as error:
        return None, error.message
    except OSError as error:
        return None, error.strerror or str(error)
    found = [repository.work_tree] if repository else []
    if any((folder / name).is_file() for name in MANIFESTS):
        found.append(folder)
    for candidate in dict.fromkeys(found):
        if not (reason := _refusal(candidate)):
            return candidate, ""
    return None, reason


def _refusal(folder: Path) -> str:
    """Why a folder is not one project of this user; "" if it is."""
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if folder in (home, *bases()) or home.is_relative_to(folder):
        return f"{folder} is no single project"
    try:
        folders.resolve(str(folder))
        owner = folder.stat().st_uid
    except CodeinfoError as error:
        return error.message
    except OSError as error:
        return error.strerror or str(error)
    if owner != posix.user_id():
        return f"{folder} belongs to another user"
    inner = Root.objects.filter(path__startswith=f"{folder}/").first()
    return f"it contains the ingested folder {inner.path}" if inner else ""


def _ended(run: IngestRun) -> str:
    """Why a folder that was ingested before is not ingested again by itself; "" if it is."""
    if run.operation == IngestRun.Operation.REMOVE:
        return "it was removed from the index"
    reasons = {
        "cancelled": "its ingest was cancelled",
        "error": f"its ingest failed: {run.last_error}",
        "needs_confirmation": "its ingest waits for a confirmation",
    }
    return reasons.get(run.state, "")


def _question(folder: Path, *, always: bool, can_ask: bool) -> FirstUse | None:
    """What the user must agree to, if anything. Raises CodeinfoError."""
    with _lock:
        known = _remembered.get(folder, _Question())
    reasons = []
    if not is_near(queries.locked_model() or DEFAULT_MODEL):
        reasons.append("its text is sent to an embedding server on another machine")
    elif known.is_large is None:
        known.is_large = count_files(folder, MAX_FILES) > MAX_FILES
    if known.is_large:
        reasons.append(f"it has more than {MAX_FILES:,} files")
    if not (reasons or always):
        return None
    why = f" ({' and '.join(reasons)})" if reasons else ""
    question = f"Ingest {folder}{why}, so that codeinfo can search it?"
    refusal = f"ask the user{why}; `codeinfo ingest {folder}` ingests it"
    with _lock:
        known = _remembered.setdefault(folder, known)
        if len(_remembered) > MAX_REMEMBERED:
            del _remembered[next(iter(_remembered))]
        is_new = can_ask and known.text != question
        known.text = question if can_ask else known.text
    return FirstUse(refusal=refusal, question=question, is_new=is_new)
