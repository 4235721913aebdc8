"""Read the facts of one file from its syntax tree. Runs in the parse process.

A query selects the nodes that a language knows; the language's `visit` gets them in the order of
their position, outer before inner. The tree is not walked recursively, but types in types are.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from tree_sitter import Node, Query, QueryCursor

from apps.code.callgraph.facts import MODULE, PAGE, Facts
from apps.code.callgraph.languages import GRAMMARS
from apps.code.callgraph.rules import Rules
from apps.code.callgraph.scopes import Scopes
from apps.code.syntax.code import language, parse
from apps.code.syntax.outline import is_script, key_of

# What a visit raises for a node that lacks parts, as in code that does not parse, or that is nested
# too deeply: it has no such fact.
INCOMPLETE = (AttributeError, IndexError, RecursionError, StopIteration, TypeError, ValueError)


def facts_of(lines: Sequence[str], grammar: str) -> Facts:
    """The facts of a file; none if the grammar has no rules. A faulty grammar may never return."""
    rules = GRAMMARS.get(grammar)
    if rules is None:
        return Facts()
    code = parse(("\n".join(lines) + "\n").encode(), grammar)
    query = _query(code.grammar, rules)
    captured = QueryCursor(query).captures(code.root).get("node", [])
    nodes: list[Node] = sorted([*captured, *code.tags], key=key_of)
    scopes = Scopes(lines)
    if code.page is not None:
        rules.open_page(scopes, code.page)
    for node in nodes:
        if scopes.is_full:
            break
        scopes.leave(node.start_byte)
        if code.page is not None and scopes.scope == MODULE and not is_script(code, node):
            scopes.enter(PAGE, node.end_byte)
        with suppress(*INCOMPLETE):
            rules.visits[node.type](scopes, node)
    return scopes.facts()


def call_facts(lines: Sequence[str], _value: Any, grammar: str) -> list[Any]:
    """The task of the parse process: the facts of a file as JSON."""
    return facts_of(lines, grammar).as_json()


@cache
def _query(grammar: str, rules: Rules) -> Query:
    known = language(grammar)
    kinds = [
        f"({kind})"
        for kind in rules.visits
        if known.id_for_node_kind(kind, True) and rules.only_in.get(kind, grammar) == grammar
    ]
    return Query(known, f"[{' '.join(kinds)}] @node")
