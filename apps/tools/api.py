"""`/tools/*`: search, repositories and symbols as JSON (docs/retrieval.md, docs/symbols.md)."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.errors import InvalidInput
from apps.core.http.parsers import rendered
from apps.lookup.symbols import (
    OutlineQuery,
    SymbolQuery,
    file_outline,
    find_definitions,
    find_references,
)
from apps.lookup.symbols.types import Definitions, References
from apps.retrieval.paging import finished
from apps.retrieval.query import SearchQuery
from apps.retrieval.repositories import list_repositories
from apps.retrieval.scope import with_hint
from apps.retrieval.search import search
from apps.tools.context.tool import CONTEXT
from apps.tools.find_callers import FIND_CALLERS
from apps.tools.find_imports import FIND_IMPORTS
from apps.tools.grep import GREP
from apps.tools.list_files import LIST_FILES
from apps.tools.read_file import READ_FILE
from apps.tools.related_code import RELATED_CODE

log = logging.getLogger("codeinfo.tools")


class VectorSearchView(APIView):
    """`POST /tools/vector-search {query, repository?, path?, language?, limit?}`; unknown keys
    are ignored (contract.md §4.2)."""

    def post(self, request: Request) -> HttpResponse:
        query = SearchQuery.parse(object_of(request))
        result = search(query)
        facts = {**query.as_log(), "results": len(result.matches), "modelId": result.model_id}
        log.info("tools vector search", extra={"context": facts})
        return rendered(with_hint(result.as_wire(), query.repositories, query.filters))


class IngestedReposView(APIView):
    """`GET /tools/ingested-repos` (contract.md §4.1)."""

    def get(self, request: Request) -> Response:
        return Response(list_repositories())


class _ByNameView(APIView):
    """Looks up a name."""

    event = ""  # the log message

    def find(self, query: SymbolQuery) -> Definitions | References:
        """Called for each request with its query. Subclasses return the results."""
        raise NotImplementedError

    def post(self, request: Request) -> Response:
        query = SymbolQuery.parse(object_of(request))
        answer = self.find(query)
        facts = {**query.as_log(), "results": len(answer.results)}
        log.info(self.event, extra={"context": facts})
        output = with_hint(answer.as_wire(), query.repositories, query.filters)
        return Response(finished(output))


class SymbolDefinitionsView(_ByNameView):
    """`POST /tools/symbol-definitions {name, repository?, path?, language?, limit?, cursor?}`."""

    event = "tools symbol definitions"

    def find(self, query: SymbolQuery) -> Definitions:
        return find_definitions(query)


class SymbolReferencesView(_ByNameView):
    """`POST /tools/symbol-references {name, repository?, path?, language?, limit?, cursor?}`."""

    event = "tools symbol references"

    def find(self, query: SymbolQuery) -> References:
        return find_references(query)


class FileOutlineView(APIView):
    """`POST /tools/file-outline {repository, path}`."""

    def post(self, request: Request) -> Response:
        query = OutlineQuery.parse(object_of(request))
        answer = file_outline(query)
        facts = {"repository": query.repository, "results": sum(1 for _ in answer.flat())}
        log.info("tools file outline", extra={"context": facts})
        return Response(answer.as_wire())


class _OutputView(APIView):
    """Answers with the output of a tool, uncut by its common cap."""

    event = ""  # the log message
    output: Callable[[Mapping[str, Any]], dict[str, Any]]

    def post(self, request: Request) -> HttpResponse:
        output = type(self).output(object_of(request))
        log.info(self.event, extra={"context": {"results": len(output["results"])}})
        return rendered(finished(output))


class GrepView(_OutputView):
    """`POST /tools/grep {pattern, fixed?, ignore_case?, word?, multiline?, mode?, context?, limit?,
    cursor?, offset?, repository?, path?, language?}`."""

    event, output = "tools grep", staticmethod(GREP.function)


class ReadFileView(_OutputView):
    """`POST /tools/read-file {repository, path, lines?}`."""

    event, output = "tools read file", staticmethod(READ_FILE.function)


class ListFilesView(_OutputView):
    """`POST /tools/list-files {repository?, path?, language?, depth?, skipped?, limit?,
    cursor?, offset?}`."""

    event, output = "tools list files", staticmethod(LIST_FILES.function)


class ContextView(_OutputView):
    """`POST /tools/context {question, repository?, path?, language?, max_tokens?}`."""

    event, output = "tools context", staticmethod(CONTEXT.function)


class RelatedCodeView(_OutputView):
    """`POST /tools/related-code {repository, path, start_line, end_line?, within?, within_path?,
    language?, limit?}`."""

    event, output = "tools related code", staticmethod(RELATED_CODE.function)


class FindCallersView(_OutputView):
    """`POST /tools/find-callers {name, repository?, path?, language?, depth?, limit?, cursor?}`."""

    event, output = "tools find callers", staticmethod(FIND_CALLERS.function)


class FindImportsView(_OutputView):
    """`POST /tools/find-imports {name, direction?, repository?, path?, language?, limit?,
    cursor?}`."""

    event, output = "tools find imports", staticmethod(FIND_IMPORTS.function)


def object_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body. Raises InvalidInput for any other body."""
    body = request.data
    if not isinstance(body, dict):
        raise InvalidInput("the body must be a JSON object")
    return body
