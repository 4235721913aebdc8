"""Read the paths that clients write: absolute, as a URI, with lines, as Windows writes them.

The tools of the index know paths within a repository. Agents have the path of a file on the user's
machine, which implies the repository, and copy places from messages of compilers and editors. As
only MCP reads them so, the HTTP API stays strict.
"""

import os
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote

from apps.core.errors import InvalidInput, NotFound
from apps.core.types import JSON
from apps.index import queries
from apps.index.models import Root
from apps.index.paths import map_path
from apps.retrieval.query import MAX_IDS
from apps.retrieval.repositories import find_root, repo_id

# Arguments that are paths → the argument with their repositories.
SCOPES = {"path": "repository", "within_path": "within"}
MAX_LENGTH = 5_000
_URI = re.compile(r"(?i)file:(?://(?:localhost)?)?(?=/)")
_DRIVE = re.compile(r"[A-Za-z]:/")
# `:12`, `:12-20`, `:12-`, `:12:5` (line and column), `#L12`, `#L12-L20`, `#L12C3-L20C1`
_COLON = re.compile(r":(\d{1,7})(?:(-\d{0,7})|:\d{1,7})?\Z")
_HASH = re.compile(r"#L(\d{1,7})(?:C\d{1,7})?(?:-L?(\d{1,7})(?:C\d{1,7})?)?\Z")


class _Place(NamedTuple):
    """A path and lines.

    lines: "12", "12-20" or "12-"; "": all
    repository: the name under which a call may use it; "": the path is relative
    """

    path: str
    lines: str = ""
    repository: str = ""


_Named = Mapping[str, Root]


def with_places(
    arguments: Mapping[str, Any], properties: Collection[str], allowed: Sequence[str] = ()
) -> JSON:
    """The arguments of a tool, with each path within its repository.

    properties: the names of the tool's arguments
    allowed: the ids of the repositories that it may look into; empty: all
    Raises InvalidInput for an absolute path that is in none of the repositories.
    """
    placed = dict(arguments)
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


def repository_of(folder: str) -> str:
    """The id of the innermost ingested repository that contains a folder, an absolute path, or has
    it as its name; "" if there is none."""
    if not _is_absolute(folder):
        with suppress(NotFound):
            return repo_id(find_root(folder))
        return ""
    place = _within(_Place(_normal(folder)), _named(()))
    return place.repository if place else ""


def _place(text: str, scope: Any, allowed: Sequence[str]) -> _Place:
    """What a text means in the repositories of a call. Raises InvalidInput."""
    read = _read(text)
    is_absolute = _is_absolute(read.path)
    if "\0" in read.path or (read == _Place(text) and not is_absolute):
        return _Place(text)
    named = _named(scope or allowed)
    # A file may be called `a:12`.
    if read.path != text and (literal := _within(_Place(text), named)):
        roots = [named[literal.repository]] if literal.repository else named.values()
        files = (queries.live_files(root).ingested() for root in roots)
        if any(found.filter(path__startswith=literal.path).exists() for found in files):
            return literal
    if place := _within(read, named):
        return place
    elsewhere = _within(read, _named(allowed)) if scope else None
    where = f"in the repository {elsewhere.repository!r}" if elsewhere else "in no ingested folder"
    problem = (
        f"{read.path} is {where}. Write a path within the repository, or below a `hostPath` of "
        "ListIngestedRepositories"
    )
    raise InvalidInput(problem, details={"details": [problem]})


def _read(text: str) -> _Place:
    path, lines = text, ""
    if match := _HASH.search(path) or _COLON.search(path):
        path, first, last = path[: match.start()], match[1], (match[2] or "").removeprefix("-")
        lines = first if match[2] is None else f"{first}-{last}"
    if uri := _URI.match(path):
        path = unquote(path[uri.end() :])
        # file:///C:/src
        path = path.lstrip("/") if _DRIVE.match(path.lstrip("/")) else path
    path = path.replace("\\", "/")
    if _is_absolute(path):
        path = _normal(path) + "/" * path.endswith("/")
    elif path.startswith("./") or "/./" in path:
        path = "/".join(part for part in path.split("/") if part != ".")
    return _Place(path, lines)


def _normal(path: str) -> str:
    """An absolute path without `..` and repeated slashes."""
    path = path.replace("\\", "/")
    # `normpath` keeps two slashes at the beginning.
    return posixpath.normpath(f"/{path.lstrip('/')}" if path.startswith("/") else path)


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def _named(names: Any) -> _Named:
    """The repositories with these names, or all. Unknown names are left to the tool."""
    if not names:
        return {repo_id(root): root for root in reversed(queries.published_roots())}
    named: dict[str, Root] = {}
    for name in (names if isinstance(names, list | tuple) else [names])[:MAX_IDS]:
        with suppress(NotFound):
            named |= {name: find_root(name)} if isinstance(name, str) else {}
    return named


def _within(place: _Place, named: _Named) -> _Place | None:
    """The place in the innermost repository that contains an absolute path; None if none does."""
    if not _is_absolute(place.path):
        return place
    paths = [place.path]
    if place.path.startswith("/"):
        # The folder that an agent works in may be a link.
        paths.append(os.path.realpath(place.path) + "/" * place.path.endswith("/"))
    for path in paths:
        found = [
            _Place(inside, place.lines, name)
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
        start = _normal(folder).rstrip("/") + "/"
        head, tail = f"{path.rstrip('/')}/"[: len(start)], path[len(start) :]
        # Windows does not tell cases apart.
        is_same = head.lower() == start.lower() if _DRIVE.match(start) else head == start
        inside += [tail] if is_same else []
    return inside
