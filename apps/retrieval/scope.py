"""Which files a request means, and why its filters leave none.

Models write paths as they read them elsewhere: `repo/src/a.py`, or with a letter wrong. The path is
then read as one of that repository, or the answer says which paths there are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from apps.core.types import JSON
from apps.index import globs, queries
from apps.index.lexical import is_foreign
from apps.index.models import Root
from apps.index.types import Filters
from apps.retrieval.query import fits, listed
from apps.retrieval.repositories import is_named, repo_id, roots_named

# What a hint names at most.
MAX_PATHS = 5
MAX_LANGUAGES = 10
# Names that are compared with a wrong one. Comparing takes about 2 µs each.
MAX_NAMES = 50_000
SIMILARITY = 0.7  # of difflib, from 0 to 1
ASK_IN_ENGLISH = (
    "Not answerable in the language of the question: these files hardly have its words. Ask in "
    "English, or with words that the files use."
)


def narrowed(roots: Sequence[Root], filters: Filters) -> tuple[Sequence[Root], Filters]:
    """Read the path `repo/src/` as `src/` of that repository if no file passes it as it is."""
    first, slash, rest = filters.path.partition("/")
    named = [root for root in roots if is_named(root, first)] if first and slash else []
    if not named or any(_paths(roots, filters)):
        return roots, filters
    return named, replace(filters, path=rest)


def with_hint(
    output: JSON, repositories: Sequence[str], filters: Filters, question: str = ""
) -> JSON:
    """The output, with a `hint` if it has no results because no file passes the filters, or none
    that fits because of the language of a question."""
    text = "" if output["results"] else hint(repositories, filters)
    text = text or language_hint(question, (row.get("weak") for row in output["results"]))
    return {"hint": text, **output} if text else output


def language_hint(question: str, is_weak: Iterable[Any]) -> str:
    """What to say to a question in another language than English whose results are all weak; "" to
    others. is_weak: of each result"""
    return ASK_IN_ENGLISH if is_foreign(question) and all(is_weak) else ""


def hint(repositories: Sequence[str], filters: Filters) -> str:
    """The filter that leaves no file, and what it could be instead; "" if files pass.

    Reads the paths of all files. Raises as `roots_named`.
    """
    if filters == Filters():
        return ""
    every = roots_named(repositories)
    roots, filters = narrowed(every, filters)
    languages = Counter(language for _, language in _paths(roots, replace(filters, language="")))
    is_whole = not repositories and roots == every
    scope = "the ingested repositories" if is_whole else ", ".join(map(repo_id, roots))
    if not languages and not filters.path:
        return f"No file is in what this is limited to: {listed(filters.areas)}."
    if not languages:
        near = _nearest(roots, filters)
        instead = f" Nearest paths: {', '.join(near)}." if near else ""
        return f"No file of {scope} matches the path {filters.path!r}.{instead}"
    if filters.language and filters.language not in languages:
        common = [name for name, _ in languages.most_common(MAX_LANGUAGES) if name]
        where = f" under {filters.path!r}" if filters.path else ""
        return (
            f"No file of {scope}{where} is in {filters.language}. "
            f"Languages there: {', '.join(common) or 'none that codeinfo knows'}."
        )
    return ""


def _paths(roots: Sequence[Root], filters: Filters) -> Iterator[tuple[str, str]]:
    """Path and language of the ingested files that pass the filters."""
    for root in roots:
        files = queries.generation_files(root).ingested().values_list("path", "language")
        for path, language in files.iterator():
            if fits(filters, root, path, language):
                yield path, language


def _nearest(roots: Sequence[Root], wanted: Filters) -> list[str]:
    """The files and folders whose name is like the last name of a path, best first."""
    name = _last_name(wanted.path)
    if not name:
        return []
    places: dict[str, dict[str, None]] = {}  # by name in lower case, in order
    for path, _ in _paths(roots, Filters(areas=wanted.areas)):
        for folder in _with_folders(path):
            last = folder.rstrip("/").rpartition("/")[2].lower()
            if last in places or len(places) < MAX_NAMES:
                paths = places.setdefault(last, {})
                if len(paths) < MAX_PATHS:
                    paths[folder] = None
    names = [name] if name in places else get_close_matches(name, places, MAX_PATHS, SIMILARITY)
    return [path for alike in names for path in places[alike]][:MAX_PATHS]


def _with_folders(path: str) -> Iterator[str]:
    """The folders of a path, with a slash at the end, then the path."""
    names = path.split("/")
    yield from ("/".join(names[:count]) + "/" for count in range(1, len(names)))
    yield path


def _last_name(path: str) -> str:
    """The last name of a path without wildcards, in lower case; "" if each name has one."""
    names = [name for name in path.lower().split("/") if name and not globs.has_wildcards(name)]
    return names[-1] if names else ""
