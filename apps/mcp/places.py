"""Find the repositories of the paths that clients write (`written_places`).

The tools of the index know paths within a repository. Agents have the path of a file on the user's
machine, which implies the repository, as does a citation, `repo/path:12-20`. As only MCP reads them
so, the HTTP API stays strict.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from apps.core.errors import NotFound
from apps.core.types import JSON
from apps.index import queries
from apps.index.models import Root
from apps.index.paths import map_path
from apps.mcp.written_places import (
    Place,
    is_absolute,
    is_of_windows,
    normal,
    read_lines,
    read_place,
)
from apps.retrieval.query import MAX_IDS, invalid
from apps.retrieval.repositories import find_root, repo_id

REPOSITORY, EVERY = "repository", "*"
# Arguments that are paths → the argument with their repositories.
SCOPES = {"path": "repository", "within_path": "within"}
MAX_LENGTH = 5_000
_Named = Mapping[str, Root]


def is_every(named: object) -> bool:
    """Whether the argument `repository` means all repositories."""
    return named in (EVERY, [EVERY])


def with_places(
    arguments: Mapping[str, Any], properties: Collection[str], allowed: Sequence[str] = ()
) -> JSON:
    """The arguments of a tool, with each path within its repository.

    properties: the names of the tool's arguments
    allowed: the ids of the repositories that it may look into; empty: all
    Raises InvalidInput for an absolute path that is in none of the repositories.
    """
    placed = dict(arguments)
    if isinstance(lines := placed.get("lines"), str) and "lines" in properties:
        placed["lines"] = read_lines(lines)
    if REPOSITORY in properties and (named := placed.get(REPOSITORY)):
        placed[REPOSITORY] = _names(named, allowed)
    for name, scope in SCOPES.items():
        text = placed.get(name)
        if name not in properties or not isinstance(text, str) or len(text) > MAX_LENGTH:
            continue
        place = _place(text.strip(), placed.get(scope), allowed)
        placed[name] = place.path
        if place.repository and scope in properties:
            placed[scope] = place.repository
        if place.lines and "lines" in properties:
            placed["lines"] = placed.get("lines") or place.lines
        elif place.lines and name == "path" and "start_line" in properties:
            first, dash, last = place.lines.partition("-")
            # Lines that the call names itself stand.
            if (last or not dash) and "start_line" not in placed:
                placed.setdefault("end_line", int(last or first))
            placed.setdefault("start_line", int(first))
    return placed


def _names(named: Any, allowed: Sequence[str]) -> Any:
    """Names of repositories, each as one that is known here: without quotes and a slash at the end,
    of a folder as a URI, or with commas between them."""
    if not isinstance(named, str):
        return named
    known = _named(allowed)
    if named in known or named == EVERY:
        return named
    parts = [_name(part) for part in named.strip("[] ").split(",")]
    if any(part not in known for part in parts):
        return named
    return parts if len(parts) > 1 else parts[0]


def _name(text: str) -> str:
    text = text.strip().strip("`'\"").rstrip("/")
    return repository_of(read_place(text).path) if "/" in text else text


def repository_of(folder: str) -> str:
    """The id of the innermost ingested repository that contains a folder, an absolute path, or has
    it as its name; "" if there is none."""
    if not is_absolute(folder):
        with suppress(NotFound):
            return repo_id(find_root(folder))
        return ""
    place = _within(Place(normal(folder)), _named(()))
    return place.repository if place else ""


def _place(text: str, scope: Any, allowed: Sequence[str]) -> Place:
    """What a text means in the repositories of a call. Raises InvalidInput."""
    read = read_place(text)
    is_plain = read == Place(text) and not is_absolute(read.path)
    if "\0" in read.path or (is_plain and (scope or "/" not in text)):
        return Place(text)
    named = _named(scope or allowed)
    # A file may be called `a:12`.
    if read.path != text and (literal := _within(Place(text), named)) and _exists(literal, named):
        return literal
    if not (scope or is_absolute(read.path)) and (cited := _cited(read, named)):
        return cited
    if (place := _within(read, named)) and not (place.repository and place.repository not in named):
        return place
    # Many take the top of a repository for `/`.
    rooted = Place(read.path.lstrip("/"), read.lines)
    if (scope or allowed) and not read.repository and _exists(rooted, named):
        return rooted
    elsewhere = _within(read, _named(allowed)) if scope else None
    where = f"in the repository {elsewhere.repository!r}" if elsewhere else "in no ingested folder"
    # The home of the server's user is not told.
    shown = text if text.startswith("~") else read.path
    raise invalid(
        f"{shown} is {where}. Write a path within the repository, or below a `hostPath` of "
        "ListIngestedRepositories"
    )


def _exists(place: Place, named: _Named) -> bool:
    """Whether files begin with the path of a place, in its repository or any of these."""
    start = place.path.partition("*")[0]
    roots = [named[place.repository]] if place.repository else named.values()
    files = (queries.live_files(root).ingested() for root in roots)
    return any(found.filter(path__startswith=start).exists() for found in files)


def _cited(read: Place, named: _Named) -> Place | None:
    """The place of a path that begins with a repository, as in citations, unless a file is called
    so."""
    names = [name for name in named if read.path.startswith(f"{name}/")]
    if not names or _exists(read, named):
        return None
    name = max(names, key=len)
    return Place(read.path[len(name) + 1 :], read.lines, name)


def _named(names: Any) -> _Named:
    """The repositories with these names, or all. Unknown names are left to the tool."""
    if not names:
        return {repo_id(root): root for root in reversed(queries.published_roots())}
    named: dict[str, Root] = {}
    for name in (names if isinstance(names, list | tuple) else [names])[:MAX_IDS]:
        with suppress(NotFound):
            named |= {name: find_root(name)} if isinstance(name, str) else {}
    return named


def _within(place: Place, named: _Named) -> Place | None:
    """The place in the innermost repository that contains an absolute path; None if none does."""
    if not is_absolute(place.path):
        return place
    paths = [place.path]
    if place.path.startswith("/"):
        # The folder that an agent works in may be a link.
        paths.append(os.path.realpath(place.path) + "/" * place.path.endswith("/"))
    for path in paths:
        found = [
            Place(inside, place.lines, name)
            for name, root in named.items()
            for inside in _inside(path, root)
        ]
        if found:
            return min(found, key=lambda one: len(one.path))
    return None


def _inside(path: str, root: Root) -> list[str]:
    """The path in a repository, by each of its folders that contains it; "" for the folder."""
    mapped = map_path(root)
    inside = []
    for folder in {mapped.container_path, mapped.host_path}:
        start = normal(folder).rstrip("/") + "/"
        head, tail = f"{path.rstrip('/')}/"[: len(start)], path[len(start) :]
        # Windows does not tell cases apart.
        is_same = head.lower() == start.lower() if is_of_windows(start) else head == start
        inside += [tail] if is_same else []
    return inside
