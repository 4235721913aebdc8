"""Find where a name is configured."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

import re2

from apps.code.paths import DATA_SUFFIXES, kinds
from apps.code.values import words
from apps.lookup.deadline import Deadline
from apps.lookup.relations.types import Relation, Relations, Scope, one_line
from apps.lookup.symbols.project import RootProject
from apps.lookup.symbols.types import SymbolQuery, longest_word

# Files with the name that are read, and rows of one file.
MAX_FILES, MAX_OF_FILE = 200, 4
_STEMS = words(
    "config configuration configure conf settings setting options option defaults default env "
    "environment properties params constants dockerfile makefile procfile compose"
)
_SUFFIXES = DATA_SUFFIXES - words(".svg .html .css .lock") | words(".env .properties .conf")
_WORDS = re.compile(r"[a-z]+")
# What follows a name that gets a value.
_VALUE = r"(?:[\"'\])\s]*(?::[^=\n]{1,60})?(?::=|\?=|\+=|=(?:[^=>]|$)|:(?:[^:]|$))|[\"'],)"

# os.getenv("NAME"), process.env.NAME, std::env::var("NAME")
_FROM_ENVIRONMENT = r"(?i:env)[\w.:]{0,16}[\[(.]\s*[\"']?"


def is_configuration(path: str) -> bool:
    """Whether a file is of the kind that configures, by its name."""
    pure = PurePosixPath(path)
    words = set(_WORDS.findall(pure.name.lower().removesuffix(pure.suffix.lower())))
    return pure.suffix.lower() in _SUFFIXES or bool(words & _STEMS)


def settings_of(query: SymbolQuery, deadline: Deadline) -> Relations:
    """The lines that give a name a value, or read it from the environment: in files of
    configuration first, then elsewhere; tests and examples last. As text is compared, all of them
    are possible.

    Raises Conflict INGEST_REQUIRED and NotFound REPO_NOT_FOUND.
    """
    rows = Scope(query.repositories, query.filters).collect(deadline, partial(_of_root, query))
    rows.sort(key=lambda row: (bool(kinds(row.place.path) & {"test", "example"}), _later(row)))
    return Relations(tuple(rows[: query.limit]))


def _later(row: Relation) -> tuple[bool, str, int]:
    return not is_configuration(row.place.path), row.place.path, row.line


def _of_root(query: SymbolQuery, project: RootProject, scope: Scope) -> Iterator[Relation]:
    visible = scope.paths(project.root)
    files = [path for path in project.with_word(longest_word(query.last)) if path in visible]
    files = [path for path in files if "prose" not in kinds(path)]
    files.sort(key=lambda path: not is_configuration(path))
    name = re2.escape(query.last)
    setting = re2.compile(rf"(?:^|[^\w.-]){name}{_VALUE}|{_FROM_ENVIRONMENT}{name}\b")
    for path, lines in project.lines_in_time(files[:MAX_FILES]):
        found = 0
        for number, line in enumerate(lines, 1):
            if found < MAX_OF_FILE and query.last in line and setting.search(line):
                found += 1
                place, text = project.place(path), one_line(line)
                yield Relation("setting", place, number, text, "", query.last, "possible")
