"""All facts of an overview."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.core.values.surrogates import encodable
from apps.index.models import Root
from apps.index.query_cache import per_generation
from apps.index.types import Area, Filters
from apps.lookup.deadline import Deadline
from apps.lookup.marking import marked
from apps.lookup.overview.commands import commands_of
from apps.lookup.overview.imported import most_imported
from apps.lookup.overview.readme import first_sentence
from apps.lookup.overview.sizes import LanguageSize, Module, is_aside, languages_of, modules_of
from apps.lookup.relations.entry_points import entry_points
from apps.lookup.relations.types import Relation, Scope
from apps.lookup.symbols.project import RootProject, files_of
from apps.retrieval.query import MAX_ID, areas_of, invalid, is_inside
from apps.retrieval.repositories import repo_id, roots_named

# Entry points that are chosen from, and those that are shown; possible ones up to so many in all.
MAX_ENTRIES, SHOWN_ENTRIES, SHOWN_POSSIBLE = 60, 5, 3
# In which files are read: imports are counted last, as they take longest.
SECONDS = 5.0


@dataclass(frozen=True)
class OverviewQuery:
    """The repository to describe."""

    repository: str  # repository id
    areas: tuple[Area, ...] = ()  # files in none of them are left out

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "OverviewQuery":
        """Check `{repository}`; unknown keys are ignored. Raises InvalidInput."""
        value = data.get("repository")
        if not isinstance(value, str) or not value.strip():
            raise invalid("repository is required")
        if len(value) > MAX_ID:
            raise invalid(f"repository must have at most {MAX_ID:,} characters")
        return cls(encodable(value).strip(), areas_of(data))


@dataclass(frozen=True)
class Overview:
    """What a repository is."""

    root: Root
    files: int
    languages: tuple[LanguageSize, ...]  # with most code first
    modules: tuple[Module, ...]  # largest first; tests, docs and the like last
    # README, commands that build, test and run it, entry points, files that are imported most:
    # each in this order, best first
    rows: tuple[Relation, ...]
    note: str = ""  # what was not looked at
    degraded: str = ""  # as in SearchResult


@marked
def overview_of(query: OverviewQuery) -> Overview:
    """What a repository is. Reads files for SECONDS, and at most as many as the limits of the
    modules of this package say.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    (root,) = roots_named((query.repository,))
    filters = Filters(areas=query.areas)
    project = RootProject(root, Deadline(SECONDS))
    files = files_of(root, filters)
    readme = first_sentence(project, repo_id(root))
    commands = commands_of(project)
    entries = started(project, filters)
    languages = languages_of(project, files)
    unread = project.deadline.note
    imported = most_imported(project, {file.path for file in files})
    rows = [*([readme] if readme else ()), *commands, *entries, *imported.rows]
    return Overview(
        root,
        len(files),
        languages,
        modules_of(files),
        tuple(row for row in rows if is_inside(query.areas, root, row.place.path)),
        " ".join(filter(None, [unread, imported.note])),
    )


@per_generation
def languages_by_size(root: Root) -> tuple[LanguageSize, ...]:
    """The languages with most code of a repository; their lines are not counted."""
    files = files_of(root, Filters())
    return languages_of(RootProject(root, Deadline(SECONDS)), files, counts_lines=False)


def started(project: RootProject, filters: Filters) -> list[Relation]:
    """One row of what is started: the definition rather than the line of the manifest. Scripts of
    npm are commands, and tests and examples start nothing of the product."""
    scope = Scope((repo_id(project.root),), filters, MAX_ENTRIES)
    rows: dict[str, Relation] = {}
    known: set[str] = set()  # files that a manifest or their name starts
    for row in entry_points(scope, project.deadline).rows:
        path, is_proven = row.place.path, row.certainty == "proven"
        if is_aside(path) or row.of.startswith("npm run") or (path in known and not is_proven):
            continue
        known |= {path} if is_proven else set()
        has_target = is_proven and row.of.startswith(("command", "module"))
        rows[row.of if has_target else f"{row.of} {path}"] = row
    shown = [row for row in rows.values() if row.certainty == "proven"][:SHOWN_ENTRIES]
    possible = [row for row in rows.values() if row.certainty != "proven"]
    return [*shown, *possible[: max(0, SHOWN_POSSIBLE - len(shown))]]
