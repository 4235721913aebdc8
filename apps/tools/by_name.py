"""What FindDefinitions and FindReferences share: they look up a name."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from apps.core.types import JSON
from apps.index.types import Area, Filters
from apps.lookup.symbols import SymbolQuery, find_definitions, find_references
from apps.lookup.symbols.types import DEFAULT_LIMIT, MAX_LIMIT, MAX_NAME, Listed
from apps.retrieval.query import areas_of, invalid, repositories_of
from apps.retrieval.scope import with_hint
from apps.tools.snippets import cut, parse_snippet_lines
from apps.tools.tool import CURSOR, SCOPE, Tool, limit, log_call, schema


class Other(NamedTuple):
    """What else a tool finds for a name."""

    find: Callable[[SymbolQuery], Listed[Any]]
    empty_hint: str


def by_name(
    name: str,
    find: Callable[[SymbolQuery], Listed[Any]],
    *,
    has_passages: bool = False,
    others: Mapping[str, Other] = MappingProxyType({}),
    **fields: Any,
) -> Tool:
    """A tool that looks up a name. `fields` are the other fields of Tool.

    others: what the argument `kind` finds instead, by its value
    """

    def run(arguments: Mapping[str, Any]) -> JSON:
        other = _chosen(arguments, others)
        query = SymbolQuery.parse(arguments)
        count = parse_snippet_lines(arguments) if has_passages else 0
        answer = (other.find if other else find)(query)
        log_call(name, **query.as_log(), results=len(answer.results))
        output = with_hint(answer.as_wire(), query.repositories, query.filters)
        if not answer.results and other:
            output.setdefault("hint", other.empty_hint)
        if not answer.results and (elsewhere := _where_else(query, areas_of(arguments))):
            output.setdefault("hint", elsewhere)
        return cut(output, query.name, count)

    properties = {
        "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME},
        **SCOPE,
        **({"kind": {"enum": [*others]}} if others else {}),
        "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
        "cursor": CURSOR,
    }
    return Tool(
        name=name,
        parameters=schema(properties, "name"),
        function=run,
        subject="name",
        has_passages=has_passages,
        **fields,
    )


def _chosen(arguments: Mapping[str, Any], others: Mapping[str, Other]) -> Other | None:
    kind = arguments.get("kind") if others else None
    if kind in (None, ""):
        return None
    if not isinstance(kind, str) or kind not in others:
        raise invalid(f"kind must be {', '.join(others)}")
    return others[kind]


def _where_else(query: SymbolQuery, areas: tuple[Area, ...] = ()) -> str:
    """Where a name that was not found is used or defined, in any repository and case; "" if it is
    not. Looks only into the areas, if there are any."""
    filters = Filters(areas=areas if any(area.path for area in areas) else ())
    wide = replace(query, repositories=repositories_of(areas), filters=filters, limit=1)
    used, defined = find_references(wide).results, find_definitions(wide).results
    if used and wide != replace(query, limit=1):
        place = used[0].place
        return (
            f"{query.last} is used elsewhere, as in {place.repo}, {place.path}:{used[0].line}. "
            "Look into all repositories without `path` and `language` to see all lines."
        )
    if defined and defined[0].name != query.last:
        place = defined[0].place
        return f"There is {defined[0].name}, in {place.repo}, {place.path}:{defined[0].start_line}."
    return ""
