"""History: one answer of git, with what is not known."""

from collections.abc import Callable, Mapping
from typing import Any

from apps.lookup.history.blame import blame
from apps.lookup.history.diff import diff
from apps.lookup.history.log import log
from apps.lookup.history.query import HistoryQuery
from apps.lookup.history.subject import Subject, subject_of
from apps.lookup.marking import marked
from apps.lookup.symbols.types import filled
from apps.retrieval.repositories import repo_id

MAX_NAMED = 3  # boundary commits
_ANSWERS: Mapping[str, Callable[[Subject], dict[str, Any]]] = {
    "log": log,
    "blame": blame,
    "diff": diff,
}


@marked
def history(query: HistoryQuery) -> dict[str, Any]:
    """The output of History. Raises as `subject_of`, NotFound REF_NOT_FOUND, InvalidInput
    CURSOR_INVALID, Conflict CURSOR_EXPIRED, and Unavailable (GIT_FAILED, TIMED_OUT)."""
    with subject_of(query) as subject:
        output = _ANSWERS[query.of](subject)
        if boundary := sorted(subject.git.boundary):
            named = ", ".join(commit[:10] for commit in boundary[:MAX_NAMED])
            subject.notes.append(
                f"This is a shallow clone: nothing before {named} is known, and what seems to "
                "come from there may be older. `git fetch --unshallow` brings the rest."
            )
    notes = filled(notes=" ".join(subject.notes))
    return {"repo": repo_id(subject.root), "of": query.of, **output, **notes}
