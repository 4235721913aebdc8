"""Answers about a repository as a whole: what it is, how it is built, tested and run, its languages
and its modules. Of several repositories, the answers are short."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from apps.index.types import Filters
from apps.lookup.overview.as_text import language_text, module_text, percent
from apps.lookup.overview.commands import commands_of
from apps.lookup.overview.imported import most_imported
from apps.lookup.overview.overview import started
from apps.lookup.overview.readme import first_sentence
from apps.lookup.overview.sizes import languages_of, modules_of
from apps.lookup.relations.types import Relation
from apps.lookup.shaped.draft import Draft
from apps.lookup.symbols.project import RootProject, files_of
from apps.retrieval.query import fits, repositories_of
from apps.retrieval.repositories import repo_id

# Repositories of one answer, and languages of one of several.
MAX_REPOSITORIES, MAX_LANGUAGES = 12, 3
NAME_ONE = "{} repositories are searched: name one, or limit the question to one."
NO_COMMAND = "Nothing was found: no manifest that says how it is {}."
DONE = {"build": "built", "tests": "tested", "run": "started"}


def overview(draft: Draft) -> None:
    projects, filters = _projects(draft)
    for project in projects:
        readme = first_sentence(project, repo_id(project.root))
        _add(draft, project, [readme] if readme else [], filters)
    _add_languages(draft, projects, filters)
    if len(projects) == 1:
        _add(draft, projects[0], commands_of(projects[0]), filters)
        _add_modules(draft, projects[0], filters)  # imports are counted last: they take longest


def commands(draft: Draft) -> None:
    projects, filters = _projects(draft)
    role = draft.question.name
    for project in projects:
        rows = [row for row in commands_of(project) if row.role == role]
        _add(draft, project, rows[: None if len(projects) == 1 else 1], filters)
        if role == "run" and not rows:
            _start(draft, project, filters)
    if not draft.rows:
        draft.note(NO_COMMAND.format(DONE[role]))


def languages(draft: Draft) -> None:
    _add_languages(draft, *_projects(draft))


def modules(draft: Draft) -> None:
    projects, filters = _projects(draft)
    if len(projects) == 1:
        _add_modules(draft, projects[0], filters)
    else:
        _add_languages(draft, projects, filters)


def _projects(draft: Draft) -> tuple[Sequence[RootProject], Filters]:
    """The repositories of an answer."""
    roots, filters = draft.scope.roots()
    allowed = repositories_of(filters.areas)
    roots = [root for root in roots if not allowed or repo_id(root) in allowed]
    if len(roots) == 1:
        draft.subject = repo_id(roots[0])
    else:
        draft.subject = f"{len(roots)} repositories"
        draft.note(NAME_ONE.format(len(roots)))
    return [RootProject(root, draft.deadline) for root in roots[:MAX_REPOSITORIES]], filters


def _add(draft: Draft, project: RootProject, rows: Sequence[Relation], filters: Filters) -> None:
    """Add rows that pass the filters: several commands may stand on one line."""
    root = project.root
    draft.rows += [r for r in rows if fits(filters, root, r.place.path, r.place.language)]


def _start(draft: Draft, project: RootProject, filters: Filters) -> None:
    _add(draft, project, started(project, filters), filters)


def _add_modules(draft: Draft, project: RootProject, filters: Filters) -> None:
    files = files_of(project.root, filters)
    draft.modules += [module_text(asdict(module)) for module in modules_of(files)]
    _start(draft, project, filters)
    imported = most_imported(project, {file.path for file in files})
    _add(draft, project, imported.rows, filters)
    draft.note(imported.note)


def _add_languages(draft: Draft, projects: Sequence[RootProject], filters: Filters) -> None:
    if len(projects) == 1:
        found = languages_of(projects[0], files_of(projects[0].root, filters))
        draft.languages += [language_text(asdict(language)) for language in found]
    else:
        draft.languages += _shares(projects, filters)


def _shares(projects: Sequence[RootProject], filters: Filters) -> Iterator[str]:
    """`flask: python 93 %, html 7 %` of repositories that have code."""
    for project in projects:
        found = languages_of(project, files_of(project.root, filters), counts_lines=False)
        texts = [f"{one.name} {percent(asdict(one))}" for one in found[:MAX_LANGUAGES]]
        if texts:
            yield f"{repo_id(project.root)}: {', '.join(texts)}"
