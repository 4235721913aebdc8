"""`/tools/*`: search, repositories and symbols as JSON (docs/retrieval.md, docs/symbols.md)."""

import logging
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.errors import InvalidInput
from apps.core.parsers import rendered
from apps.retrieval.context import ContextQuery, build_context
from apps.retrieval.query import SearchQuery
from apps.retrieval.related_code import RelatedQuery, related_code
from apps.retrieval.repositories import list_repositories
from apps.retrieval.scope import with_hint
from apps.retrieval.search import search
from apps.retrieval.symbols import (
    OutlineQuery,
    SymbolQuery,
    file_outline,
    find_definitions,
    find_references,
)
from apps.retrieval.symbols.types import Definitions, References

log = logging.getLogger("codeinfo.retrieval")


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
        return Response(with_hint(answer.as_wire(), query.repositories, query.filters))


class SymbolDefinitionsView(_ByNameView):
    """`POST /tools/symbol-definitions {name, repository?, path?, language?, limit?}`."""

    event = "tools symbol definitions"

    def find(self, query: SymbolQuery) -> Definitions:
        return find_definitions(query)


class SymbolReferencesView(_ByNameView):
    """`POST /tools/symbol-references {name, repository?, path?, language?, limit?}`."""

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


class ContextView(APIView):
    """`POST /tools/context {question, repository?, path?, language?, max_tokens?}`."""

    def post(self, request: Request) -> HttpResponse:
        query = ContextQuery.parse(object_of(request))
        answer = build_context(query)
        facts = {**query.as_log(), "results": len(answer.pieces)}
        log.info("tools context", extra={"context": facts})
        return rendered(with_hint(answer.as_wire(), query.repositories, query.filters))


class RelatedCodeView(APIView):
    """`POST /tools/related-code {repository, path, start_line, end_line?, within?, within_path?,
    language?, limit?}`."""

    def post(self, request: Request) -> HttpResponse:
        query = RelatedQuery.parse(object_of(request))
        output = related_code(query)
        facts = {**query.as_log(), "results": len(output["results"])}
        log.info("tools related code", extra={"context": facts})
        return rendered(with_hint(output, query.repositories, query.filters))


def object_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body. Raises InvalidInput for any other body."""
    body = request.data
    if not isinstance(body, dict):
        raise InvalidInput("the body must be a JSON object")
    return body
