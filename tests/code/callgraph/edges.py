"""The edges of small repositories that are written in a test."""

from collections.abc import Mapping
from textwrap import dedent

from apps.code.callgraph.callers import targets
from apps.code.callgraph.languages import rules_for
from apps.code.callgraph.resolve import Resolver
from benchmarks.callers_project import MemoryProject


def edges(files: Mapping[str, str]) -> list[str]:
    """`caller -> callee`, in the order of paths and lines; `?` before a possible one. Definitions
    are written as `path:symbol`, without the path in the same file."""
    project = MemoryProject({path: dedent(text) for path, text in files.items()})
    resolver = Resolver(project)
    found: list[str] = []
    for path in project.paths:
        facts = project.facts(path)
        assert facts is not None
        for call in sorted(facts.calls, key=lambda each: (each.row, each.column)):
            for each in targets(resolver, path, call):
                there = project.facts(each.path)
                assert there is not None
                symbol = there.definitions[each.number].path
                callee = symbol if each.path == path else f"{each.path}:{symbol}"
                mark = "" if each.proven else "? "
                found.append(f"{facts.enclosing(call.scope) or path} -> {mark}{callee}")
    return found


def imported(files: Mapping[str, str], path: str) -> dict[str, list[str]]:
    """Module and name → the files that the import means."""
    project = MemoryProject({path: dedent(text) for path, text in files.items()})
    facts = project.facts(path)
    assert facts is not None
    return {
        f"{each.module} {each.member}".strip(): list(
            rules_for(path).import_paths(project, path, each)
        )
        for each in facts.imports
    }
