"""Which repositories a call without `repository` means: those of the client's folders.

A folder that is not ingested is ingested at the first call of the bridge (`first_use`), or the
answer says that it is not.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

from django.db import DatabaseError

from apps.core.concurrency.computed import in_thread
from apps.core.errors import CodeinfoError, Conflict, InvalidInput
from apps.core.types import JSON
from apps.index import queries
from apps.index.models import IngestRun
from apps.ingest import first_use
from apps.ingest.first_use import FirstUse
from apps.mcp.places import EVERY, REPOSITORY, is_every, repository_of, with_places
from apps.mcp.reingest import wait_for_end
from apps.mcp.types import QUESTION, Call, InputRequired, Workspace
from apps.retrieval.query import SearchQuery
from apps.retrieval.repositories import repo_id
from apps.retrieval.search import search
from apps.tools import tool as tools
from apps.tools.tool import ANSWER, Tool

# The argument with that name.
SCHEMA: JSON = tools.REPOSITORY | {"description": f"`id`s; {EVERY} is all."}
# Why the answer is not, or not only, about the client's folder.
NOTE = "workspace"
# How long a call waits for the first ingest of its folder.
WAIT_SECONDS = 20.0
# How long the beginning waits for a look at the folder.
EXPECT_SECONDS = 5.0
# Other repositories that a hint names.
MAX_NAMED = 3
# The tools that rank passages, and their argument with the question.
RANKED = {"VectorSearch": "query", "Context": "question"}
# The name of the question whether to ingest a folder, before the folder: to agree to one is not to
# agree to others.
INGEST = "ingest "
# The ids of the repositories that a restricted address may look into, () if only paths restrict it;
# None: all.
Allowed = Sequence[str] | None


@dataclass(frozen=True)
class Scope:
    """The arguments of a call with its repositories.

    own: the ids of the client's repositories, if the call means these
    missing: folders of the client that are in no ingested folder
    note, question: of the answer; "" for none
    """

    arguments: JSON
    own: Sequence[str] = ()
    missing: Sequence[str] = ()
    note: str = ""
    question: str = ""


def scope_of(
    schema: JSON, arguments: Mapping[str, Any], folders: Sequence[str], allowed: Allowed
) -> Scope:
    """Read the paths of a call and its repositories.

    schema: that of the arguments
    folders: where the client works
    Raises InvalidInput for an absolute path that is in none of the repositories.
    """
    properties = schema["properties"]
    is_optional = REPOSITORY not in schema.get("required", ())
    arguments = dict(arguments)
    if is_optional and is_every(arguments.get(REPOSITORY)):
        del arguments[REPOSITORY]
        folders = ()
    placed = with_places(arguments, properties, allowed or ())
    if placed.get(REPOSITORY) or REPOSITORY not in properties:
        return Scope(placed)
    ids = {folder: repository_of(folder) for folder in folders}
    if allowed:
        # Another repository is refused as the client names it.
        ids = {folder: id if id in allowed else folder for folder, id in ids.items()}
    own = list(dict.fromkeys(filter(None, ids.values())))
    if len(own) == 1:
        placed[REPOSITORY] = own[0]
    elif own and is_optional:
        placed[REPOSITORY] = own
    # A restricted address tells nothing of what is outside.
    return Scope(placed, own, _missing(folders)) if allowed is None else Scope(placed)


def _missing(folders: Sequence[str]) -> list[str]:
    return [folder for folder in folders if not repository_of(folder)]


def _scope_or_missing(
    schema: JSON, arguments: Mapping[str, Any], folders: Sequence[str], allowed: Allowed
) -> Scope:
    """As `scope_of`. A path in a folder that is not ingested yet is no error."""
    try:
        return scope_of(schema, arguments, folders, allowed)
    except InvalidInput:
        missing = [] if arguments.get(REPOSITORY) or allowed is not None else _missing(folders)
        if not missing:
            raise
        return Scope({}, missing=missing)


def answer(tool: Tool, scope: Scope, **form: bool) -> JSON:
    """The answer to a call. If it is about the client's repositories only, and nothing there fits,
    its hint names up to MAX_NAMED others that answer nearer."""
    try:
        output = tool.hinted(tool.run(scope.arguments, **form))
    except Conflict as error:
        if not scope.note or error.code != "INGEST_REQUIRED":
            raise
        raise Conflict(f"{error.message}. {scope.note}", code=error.code) from error
    if scope.own and not _fits(output) and (names := _nearer(tool, scope)):
        near = f"Nearer, in {', '.join(names)}: name it as `repository`, or `{EVERY}` for all."
        output["hint"] = " ".join(filter(None, (output.get("hint"), near)))
    notes = {NOTE: scope.note, QUESTION: scope.question}
    return {name: text for name, text in notes.items() if text} | output


def _fits(output: JSON) -> bool:
    """Whether an answer has a row that is not weak, or is no list."""
    rows = output.get("results")
    return (
        rows is None
        or ANSWER in output
        or not all(isinstance(row, Mapping) and row.get("weak") for row in rows)
    )


def _nearer(tool: Tool, scope: Scope) -> list[str]:
    """Other repositories that a call fits, best first. This costs as much as the call itself."""
    roots = queries.published_roots()
    stores = {root.store for root in roots if repo_id(root) in scope.own}
    # Roots of one store are copies of each other.
    others = {repo_id(root) for root in roots if root.store not in stores}
    wide = {name: value for name, value in scope.arguments.items() if name != REPOSITORY}
    if not others or "cursor" in wide or REPOSITORY in tool.parameters.get("required", ()):
        return []
    found: list[str] = []
    with suppress(CodeinfoError):
        if text := RANKED.get(tool.name):
            query = SearchQuery.parse({**wide, "query": wide.get(text)} | {"limit": None})
            matches = [match.repo for match in search(query).matches if not match.is_weak]
            found = list(takewhile(lambda name: name not in scope.own, matches))
        else:
            found = [row["repo"] for row in tool.function(wide).get("results", ())]
    return [name for name in dict.fromkeys(found) if name in others][:MAX_NAMED]


async def in_workspace(
    schema: JSON, arguments: Mapping[str, Any], call: Call, allowed: Allowed
) -> Scope | InputRequired:
    """The scope of a call. Folders that are not ingested are ingested first if they may be.

    Raises as `scope_of`, and Conflict BUSY while the only folder is being ingested.
    """
    folders = call.workspace.folders
    scope = await in_thread(_scope_or_missing, schema, arguments, folders, allowed)
    notes, questions = list[str](), list[str]()
    for folder in scope.missing:
        used = await _used(folder, call)
        if used.is_new:
            return InputRequired({INGEST + folder: used.question})
        refusal = used.refusal
        questions += filter(None, [used.question])
        if used.run:
            refusal = await _ingested(folder, used.run, call, is_only=not scope.own)
        if refusal:
            notes.append(f"{folder} is not ingested: {refusal.rstrip('.')}.")
    if scope.missing:
        scope = await in_thread(scope_of, schema, arguments, folders, allowed)
    if notes and not scope.own:
        notes.append("All other repositories were looked into.")
    return replace(scope, note=" ".join(notes), question=" ".join(questions))


async def expect(workspace: Workspace) -> None:
    """Called when a client begins: prepare for the first ingest of its folders."""
    if workspace.may_ingest and workspace.consent == "auto":
        # The call will report a fault. A folder may be of a server that does not answer.
        with suppress(CodeinfoError, DatabaseError, OSError):
            async with asyncio.timeout(EXPECT_SECONDS):
                await in_thread(_expect, workspace.folders)


def _expect(folders: Sequence[str]) -> None:
    for folder in _missing(folders):
        first_use.expect(folder)


async def _used(folder: str, call: Call) -> FirstUse:
    if not call.workspace.may_ingest:
        return FirstUse(refusal="only its owner can have it ingested")
    consent, given = call.workspace.consent, call.answers.get(INGEST + folder)
    if isinstance(given, Mapping) and given.get("action") == "accept":
        consent = "yes"
    start = partial(first_use.start, folder, consent, can_ask=_can_ask(call))
    return await in_thread(start)


def _can_ask(call: Call) -> bool:
    """Whether the client asks its user in place of an answer; only stateless requests say so."""
    forms = call.capabilities.get("elicitation")
    return isinstance(forms, Mapping) and (not forms or "form" in forms)


async def _ingested(folder: str, run: IngestRun, call: Call, *, is_only: bool) -> str:
    """Wait until a folder can be searched. Return why it cannot; "" if it can.

    Raises Conflict BUSY if that takes long, and there is no other folder to look into.
    """
    try:
        async with asyncio.timeout(WAIT_SECONDS) as limit:
            ended = await wait_for_end(run, call, lambda: bool(repository_of(folder)))
    except TimeoutError:
        if not limit.expired():
            raise
    else:
        is_there = await in_thread(repository_of, folder)
        return "" if is_there else ended.last_error or ended.message
    row = await in_thread(queries.find_run, run.id)
    done = f"{row.file_index or 0:,} of {row.file_total:,} files" if row.file_total else ""
    text = f"it is being ingested: {done or row.message or row.state}"
    if is_only:
        problem = f"{folder}: {text}. Call again, or with `{REPOSITORY}: {EVERY}` for the others."
        raise Conflict(problem, code="BUSY")
    return text
