"""`/tools/symbol-*` and `/tools/file-outline`: the symbols as JSON (docs/symbols.md)."""

import logging

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.retrieval.api import object_of
from apps.retrieval.symbols import (
    OutlineQuery,
    SymbolQuery,
    file_outline,
    find_definitions,
    find_references,
)

log = logging.getLogger("codeinfo.retrieval")


class SymbolDefinitionsView(APIView):
    """`POST /tools/symbol-definitions {name, repository?, path?, language?, limit?}`."""

    def post(self, request: Request) -> Response:
        query = SymbolQuery.parse(object_of(request))
        answer = find_definitions(query)
        facts = {**query.as_log(), "results": len(answer.results)}
        log.info("tools symbol definitions", extra={"context": facts})
        return Response(answer.as_wire())


class SymbolReferencesView(APIView):
    """`POST /tools/symbol-references {name, repository?, path?, language?, limit?}`."""

    def post(self, request: Request) -> Response:
        query = SymbolQuery.parse(object_of(request))
        answer = find_references(query)
        facts = {**query.as_log(), "results": len(answer.results)}
        log.info("tools symbol references", extra={"context": facts})
        return Response(answer.as_wire())


class FileOutlineView(APIView):
    """`POST /tools/file-outline {repository, path}`."""

    def post(self, request: Request) -> Response:
        query = OutlineQuery.parse(object_of(request))
        answer = file_outline(query)
        facts = {"repository": query.repository, "results": sum(1 for _ in answer.flat())}
        log.info("tools file outline", extra={"context": facts})
        return Response(answer.as_wire())
