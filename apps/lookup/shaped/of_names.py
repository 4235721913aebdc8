"""Answers about a name: what defines, calls, uses, tests, sets, extends or leads to it."""

from dataclasses import replace

from apps.code.callgraph.languages import BY_LANGUAGE
from apps.code.paths import kinds
from apps.lookup.relations.call_paths import call_path, calls_of
from apps.lookup.relations.configuration import settings_of
from apps.lookup.relations.implementations import implementations_of
from apps.lookup.relations.tests_of import tests_of
from apps.lookup.relations.types import row_of
from apps.lookup.shaped.draft import MAX_ROWS, Draft
from apps.lookup.symbols import CallersQuery, find_callers
from apps.lookup.symbols.references import find_references

MAX_CALLERS, MAX_TESTS = 14, 5
NO_RULES = "Calls of {} are not resolved: these lines have the name."
NO_RULES_AT_ALL = "Calls of {} are not resolved."
NO_CALL = "No call of it was resolved: these lines have the name."


def definition(draft: Draft) -> None:
    draft.define(draft.question.name, most=8)


def callers(draft: Draft) -> None:
    name = draft.question.name
    hits = draft.define(name)
    query = draft.scope.named(name, limit=100)
    languages = {hit.symbol.language for hit in hits}
    if languages & BY_LANGUAGE.keys():
        found = find_callers(CallersQuery(query), draft.deadline)
        rows = [
            row_of("test" if "test" in kinds(r.place.path) else "caller", r, r.callee, r.kind)
            for r in found.results
        ]
        draft.add((row for row in rows if row.role == "caller"), MAX_CALLERS)
        draft.add((row for row in rows if row.role == "test"), MAX_TESTS)
        draft.note(found.notes)
    if unresolved := languages - BY_LANGUAGE.keys():
        draft.note(NO_RULES.format(", ".join(sorted(unresolved))))
    if not draft.has("caller") and not draft.has("test"):
        if hits and not unresolved and not draft.deadline.unread:
            draft.note(NO_CALL)
        _refer(draft, most=12)
    if not draft.has("test"):
        _test(draft)


def uses(draft: Draft) -> None:
    draft.define(draft.question.name)
    _refer(draft, most=14)
    _test(draft)


def _refer(draft: Draft, most: int) -> None:
    """Add lines with the name: those of tests are added by `_test`."""
    query = draft.scope.named(draft.question.name, limit=100)
    found = find_references(query, draft.deadline)
    used = [r for r in found.results if not r.defines and "test" not in kinds(r.place.path)]
    draft.add((row_of("reference", line, found.name, "possible") for line in used), most)


def _test(draft: Draft, most: int = MAX_TESTS) -> None:
    found = tests_of(draft.scope.named(draft.question.name, most), draft.deadline)
    draft.take(replace(found, note=""), most)


def tests(draft: Draft) -> None:
    draft.define(draft.question.name)
    _test(draft, most=14)


def configuration(draft: Draft) -> None:
    draft.define(draft.question.name)
    draft.take(settings_of(draft.scope.named(draft.question.name, MAX_ROWS), draft.deadline))
    if not draft.has("setting"):
        _refer(draft, most=8)  # its value may be set elsewhere


def implementations(draft: Draft) -> None:
    draft.define(draft.question.name)
    query = draft.scope.named(draft.question.name, MAX_ROWS)
    draft.take(implementations_of(query, draft.deadline))


def path(draft: Draft) -> None:
    start, end = draft.question.name, draft.question.other
    draft.define(start, most=1)
    found = call_path(draft.scope.named(start), draft.scope.named(end), draft.deadline)
    draft.take(found)
    draft.define(end, most=1)


def steps(draft: Draft) -> None:
    hits = draft.define(draft.question.name, most=1)
    draft.take(calls_of(draft.scope.named(draft.question.name, MAX_ROWS - 1), draft.deadline))
    languages = {hit.symbol.language for hit in hits} - BY_LANGUAGE.keys()
    if languages and not draft.has("step"):
        draft.note(NO_RULES_AT_ALL.format(", ".join(sorted(languages))))
