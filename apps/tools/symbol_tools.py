"""The tools that look up names: definitions, references and the outline of a file."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from apps.core.types import JSON
from apps.index.types import Area, Filters
from apps.lookup.symbols import (
    OutlineQuery,
    SymbolQuery,
    file_outline,
    find_definitions,
    find_references,
)
from apps.lookup.symbols.types import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    MAX_NAME,
    Definitions,
    References,
)
from apps.retrieval.query import areas_of, repositories_of
from apps.retrieval.scope import with_hint
from apps.tools import compact
from apps.tools.output_schemas import DEFINITIONS, OUTLINE, REFERENCES
from apps.tools.quoted import quoted_outline, quoted_symbols
from apps.tools.snippets import cut, parse_snippet_lines
from apps.tools.tool import (
    CURSOR,
    FILE_PATH,
    LANGUAGE,
    PATH,
    QUOTED,
    REPOSITORY,
    REPOSITORY_ID,
    Tool,
    limit,
    log_call,
    schema,
)


def _file_outline(arguments: Mapping[str, Any]) -> JSON:
    query = OutlineQuery.parse(arguments)
    answer = file_outline(query)
    log_call("FileOutline", repository=query.repository, results=sum(1 for _ in answer.flat()))
    return answer.as_wire()


def where_else(query: SymbolQuery, areas: tuple[Area, ...] = ()) -> str:
    """Where a name that was not found is used or defined, in any repository and case; "" if it is
    not. Looks only into the areas, if there are any."""
    filters = Filters(areas=areas if any(area.path for area in areas) else ())
    wide = replace(query, repositories=repositories_of(areas), filters=filters, limit=1)
    used, defined = find_references(wide).results, find_definitions(wide).results
    if used and wide != replace(query, limit=1):
        place = used[0].place
        return (
            f"{query.last} is used elsewhere, as in {place.repo}, {place.path}:{used[0].line}. "
            "Leave out `repository`, `path` and `language` to see all lines."
        )
    if defined and defined[0].name != query.last:
        place = defined[0].place
        return f"There is {defined[0].name}, in {place.repo}, {place.path}:{defined[0].start_line}."
    return ""


def _by_name(
    name: str,
    find: Callable[[SymbolQuery], Definitions | References],
    *,
    description: str,
    has_passages: bool = False,
    **fields: Any,
) -> Tool:
    """A tool that looks up a name. `fields` are the other fields of Tool."""

    def run(arguments: Mapping[str, Any]) -> JSON:
        query = SymbolQuery.parse(arguments)
        count = parse_snippet_lines(arguments) if has_passages else 0
        answer = find(query)
        log_call(name, **query.as_log(), results=len(answer.results))
        output = with_hint(answer.as_wire(), query.repositories, query.filters)
        if not answer.results and (elsewhere := where_else(query, areas_of(arguments))):
            output.setdefault("hint", elsewhere)
        return cut(output, query.name, count)

    properties = {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_NAME,
        },
        "repository": REPOSITORY,
        "path": PATH,
        "language": LANGUAGE,
        "limit": limit(DEFAULT_LIMIT, MAX_LIMIT),
        "cursor": CURSOR,
    }
    return Tool(
        name,
        description,
        schema(properties, "name"),
        run,
        subject="name",
        has_passages=has_passages,
        **fields,
    )


FIND_DEFINITIONS = _by_name(
    "FindDefinitions",
    find_definitions,
    description=(
        "Find where a name is defined: functions, classes, methods, types, constants, with path, "
        "lines, kind and the beginning of the text. Use it whenever you "
        "know the name. Example: 'retry' or 'Client.retry'. `match` is 'exact', "
        "'case-insensitive', or 'last-part' if only the last part is known. " + QUOTED
    ),
    has_passages=True,
    title="Find where a name is defined",
    output_schema=DEFINITIONS,
    compact=compact.compact_definitions,
    compact_schema=compact.DEFINITIONS,
    quoted=quoted_symbols,
    progress="Looking up where it is defined:",
    empty_hint=(
        "Nothing ingested defines this name; it may come from a library. Check the spelling, "
        "leave out `repository` and filters, or describe it to VectorSearch."
    ),
    result_words=("definition", "definitions"),
)

FIND_REFERENCES = _by_name(
    "FindReferences",
    find_references,
    description=(
        "Find every line that uses an identifier: calls, imports, annotations, overrides, each "
        "with the definition that contains it (`symbol`). "
        "Only the last part counts: 'Client.get' finds all uses of 'get'. Not for text in comments "
        "and strings: use Grep. " + QUOTED
    ),
    title="Find where a name is used",
    output_schema=REFERENCES,
    compact=compact.compact_references,
    compact_schema=compact.REFERENCES,
    quoted=quoted_symbols,
    progress="Looking up where it is used:",
    empty_hint=(
        "No line uses this identifier. Check the spelling and the case, or leave out "
        "`repository` and filters."
    ),
    result_words=("line", "lines"),
)

FILE_OUTLINE = Tool(
    name="FileOutline",
    description=(
        "List what one file defines, nested, or the headings of a document, with "
        "kind, lines and signature. Use it before you read parts of the file. " + QUOTED
    ),
    parameters=schema({"repository": REPOSITORY_ID, "path": FILE_PATH}, "repository", "path"),
    function=_file_outline,
    title="Outline a file",
    output_schema=OUTLINE,
    compact=compact.compact_outline,
    compact_schema=compact.OUTLINE,
    quoted=quoted_outline,
    progress="Reading the outline of",
    subject="path",
    empty_hint="The file defines nothing, or codeinfo has no grammar for its language.",
    result_words=("definition", "definitions"),
)

SYMBOL_TOOLS = (FIND_DEFINITIONS, FIND_REFERENCES, FILE_OUTLINE)
