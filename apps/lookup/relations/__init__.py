"""Lines that stand in a relation to a definition or a repository: tests, implementations, ways of
calls, entry points, routes, settings, frames of a stack trace (docs/questions.md).

Each function takes a `SymbolQuery` or a `Scope`, and returns bounded `Relations`. It reads files
until the deadline of the answer that they are for; without one, for `types.SECONDS`, and its note
tells what was not read."""

from apps.lookup.relations.call_paths import call_path, calls_of
from apps.lookup.relations.configuration import settings_of
from apps.lookup.relations.entry_points import entry_points
from apps.lookup.relations.implementations import find_implementations, implementations_of
from apps.lookup.relations.routes import find_routes
from apps.lookup.relations.tests_of import find_tests, tests_of
from apps.lookup.relations.traces import frames_of
from apps.lookup.relations.types import Relation, Relations, Scope

__all__ = [
    "Relation",
    "Relations",
    "Scope",
    "call_path",
    "calls_of",
    "entry_points",
    "find_implementations",
    "find_routes",
    "find_tests",
    "frames_of",
    "implementations_of",
    "settings_of",
    "tests_of",
]
