"""What an answer stands on: of each repository its commit, and what has changed on disk since."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connections

from apps.core.config import config
from apps.core.types import JSON
from apps.core.values.json_schema import (
    BOOLEAN,
    COUNT,
    TEXT,
    TIME,
    list_schema,
    object_schema,
    or_null,
    typed,
)
from apps.core.values.times import wire_time
from apps.index import queries
from apps.index.models import Root
from apps.index.root_directory import RootDirectory
from apps.ingest.watching import mounts, states
from apps.ingest.watching.files import FileState, is_as_published, published_states, state_of
from apps.lookup.cells import with_cells
from apps.retrieval.query import areas_of, repositories_of
from apps.retrieval.repositories import is_named, partly_ingested, repo_id
from apps.tools.forms import named
from apps.tools.tool import ANSWER, INDEX, NOTES, Tool

# Files of an answer that are looked at, and of these, the ones that are named.
MAX_FILES, MAX_NAMED = 200, 20
# A file system of another machine may not answer.
STAT_SECONDS = 0.005

_NOTES: JSON = {
    "partial": typed("string", "Which repositories are ingested in part so far."),
    "stale": typed("string", "Which repositories have changed since, and are not ingested yet."),
    "changedFiles": list_schema(TEXT) | {"description": "repo/path, differing on disk."},
    "gone": list_schema(TEXT) | {"description": "repo/path, no more on disk."},
}
_STANDING = object_schema(
    {"ingestedAt": or_null(TIME)},
    {
        "generation": COUNT,
        "commit": TEXT,
        "branch": TEXT,
        "dirty": BOOLEAN,
        "partial": object_schema({"files": COUNT, "of": COUNT}),
    },
)
_INDEX: JSON = {INDEX: {"type": "object", "additionalProperties": _STANDING}}


def standing(tool: Tool) -> Tool:
    """Have a tool wait for changes that are known, and say what its answer stands on, and in which
    cells of notebooks its rows are."""

    @wraps(tool.function)
    def function(arguments: Mapping[str, Any]) -> JSON:
        seconds = config().fresh_wait_ms / 1_000
        followed = _asked(tool, arguments) if states.states.folders else []
        if followed:
            states.wait_for(followed, seconds)
        output = tool.function(arguments)
        # Nothing is there: perhaps what was written a moment ago was not known yet.
        if output.get("results") == [] and states.are_behind(followed, seconds):
            states.wait_for(followed, seconds)
            output = tool.function(arguments)
        output = with_cells(output)
        notes = _notes(_asked(tool, arguments), output)
        return {**output, **notes} if output.get("results") else {**notes, **output}

    def with_notes(form: Callable[[JSON], JSON]) -> Callable[[JSON], JSON]:
        return lambda output: form(output) | named(output, *NOTES)

    compact_schema = tool.compact_schema and _with(tool.compact_schema, _NOTES)
    return replace(
        tool,
        function=function,
        compact=with_notes(tool.compact),
        quoted=with_notes(tool.quoted),
        output_schema=_with(tool.output_schema, _NOTES | _INDEX),
        compact_schema=compact_schema,
    )


def _with(schema: JSON, properties: JSON) -> JSON:
    return schema | {"properties": schema["properties"] | properties}


def _asked(tool: Tool, arguments: Mapping[str, Any]) -> list[Root]:
    """Return the repositories that a call is about. The tool refuses unknown ones."""
    values = [arguments.get(scope) or () for scope in tool.scopes]
    lists = [[value] if isinstance(value, str) else value for value in values]
    names = [name for value in lists if isinstance(value, list) for name in value]
    roots = queries.published_roots()
    allowed = repositories_of(areas_of(arguments))
    return [
        root
        for root in roots
        if (not names or any(is_named(root, str(name)) for name in names))
        and (not allowed or repo_id(root) in allowed)
    ]


def _notes(subjects: Sequence[Root], output: JSON) -> JSON:
    files: dict[str, set[str]] = {}
    for repository, path in _files(output):
        files.setdefault(repository, set()).add(path)
    roots = {repo_id(root): root for root in subjects}
    # Without results, the answer is about all that was asked.
    shown = [roots[name] for name in files if name in roots] or list(subjects)
    notes: JSON = {}
    # The files to come may match, too, where there are no rows of a repository yet.
    if partial := partly_ingested(subjects):
        notes["partial"] = partial
    if stale := states.behind(shown, repo_id):
        notes["stale"] = stale
    away = {root.id for root in shown if (one := states.known(root)) and one.problem}
    shared = mounts.shared(shown)
    changed: list[str] = []
    gone: list[str] = []
    for name, paths in files.items():
        if name in roots and roots[name].id not in away:
            look = _look_in_time if roots[name].id in shared else _look
            differing, missing = look(roots[name], sorted(paths))
            changed += [f"{name}/{path}" for path in differing]
            gone += [f"{name}/{path}" for path in missing]
    lists = {"changedFiles": changed[:MAX_NAMED], "gone": gone[:MAX_NAMED]}
    return notes | named(lists, *lists) | {INDEX: {repo_id(root): _index(root) for root in shown}}


def _index(root: Root) -> JSON:
    at = root.last_ingest_at
    git = named(vars(root), "commit", "branch")
    dirty = {} if root.dirty is None else {"dirty": root.dirty}
    of = root.awaited_files
    partial = {} if of is None else {"partial": {"files": root.files, "of": of}}
    facts = {**git, **dirty, **partial, "generation": root.generation}
    return facts | {"ingestedAt": at and wire_time(at)}


def _files(output: JSON) -> Iterator[tuple[str, str]]:
    """Yield repository and path of the first MAX_FILES rows of an answer."""
    answer = output.get(ANSWER) or {}
    rows = (output, *answer.get("rows", ()), *(output.get("results") or ()))
    files = (
        (row["repo"], row["relPath"])
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("repo"), str) and "relPath" in row
    )
    return islice(files, MAX_FILES)


def _look_in_time(root: Root, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """As `_look`. A file system that does not answer within STAT_SECONDS tells of none."""
    if root.id in _hanging:
        return [], []
    found: list[tuple[list[str], list[str]]] = []

    def look() -> None:
        try:
            found.append(_look(root, paths))
        finally:
            _hanging.discard(root.id)
            connections.close_all()

    _hanging.add(root.id)
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(STAT_SECONDS)
    return found[0] if found else ([], [])


_hanging: set[UUID] = set()


def _look(root: Root, paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return which of the files differ on disk, and which are not there any more."""
    since = root.looked_at.timestamp() * 1e9 if root.looked_at else 0.0
    present: dict[str, FileState] = {}
    gone: list[str] = []
    try:
        with RootDirectory(Path(root.path)) as directory:
            for path in paths:
                try:
                    status = directory.stat(path)
                except (FileNotFoundError, NotADirectoryError):
                    gone.append(path)
                except OSError:
                    continue
                else:
                    # Programs can set the modification time, but not this one.
                    if status.st_ctime_ns >= since:
                        present[path] = state_of(status)
    except OSError:
        return [], []
    rows = queries.live_files(root).filter(path__in=list(present)).order_by()
    published = dict(published_states(rows))
    known = present.keys() & published.keys()
    return sorted(p for p in known if not is_as_published(present[p], published[p])), gone
