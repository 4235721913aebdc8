"""Shell completion of repositories and paths, from a running server only.

A completion that fails completes nothing: it must not write to the user's prompt.
"""

import json

import click
from click.shell_completion import CompletionItem

from codeinfo_cli import client, project, scope
from codeinfo_cli.errors import CliError

TIMEOUT_SECONDS = 2.0
MOST = 200


def repositories(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the id of a repository."""
    project.use()
    if (running := client.if_running(TIMEOUT_SECONDS)) is None:
        return []
    try:
        known = scope.repositories(running)
    except CliError:
        return []
    return [
        CompletionItem(repository.id)
        for repository in known[:MOST]
        if repository.id.startswith(incomplete) and repository.id.isprintable()
    ]


def paths(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete an ingested path: one of the current folder, or `repository/path`."""
    project.use()
    if (running := client.if_running(TIMEOUT_SECONDS)) is None:
        return [CompletionItem(incomplete, type="file")]
    try:
        known = scope.repositories(running)
        matches = _paths(running, known, incomplete, tuple(context.params.get("repos") or ()))
    except CliError:
        return []
    ids = [f"{repository.id}/" for repository in known if repository.id.startswith(incomplete)]
    items = [text for text in (*matches, *ids) if text.isprintable()]
    return [CompletionItem(text) for text in dict.fromkeys(items[:MOST])]


def _paths(
    running: client.Client,
    known: list[scope.Repository],
    incomplete: str,
    names: tuple[str, ...],
) -> list[str]:
    """The entries of the folder that is being typed."""
    folder, slash, start = incomplete.rpartition("/")
    try:
        place = scope.locate(running, f"{folder}{slash}" or ".", names)
    except CliError:
        return []
    prefix = f"{place.path}/" if place.path else ""
    query = {"repository": place.repository, "path": f"{prefix}{start}", "depth": 1, "limit": MOST}
    rows = json.loads(running.post("/tools/list-files", query))["results"]
    return [f"{folder}{slash}{row['relPath'].removeprefix(prefix)}" for row in rows]
