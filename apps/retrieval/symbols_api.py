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
from apps.retrieval.symbols.types import Definitions, References

log = logging.getLogger("codeinfo.retrieval")


class _ByNameView(APIView):
    """Looks a name up in all that may be searched."""

    event = ""

    def find(self, query: SymbolQuery) -> Definitions | References:
        raise NotImplementedError

    def post(self, request: Request) -> Response:
        query = SymbolQuery.parse(object_of(request))
        answer = self.find(query)
        facts = {**query.as_log(), "results": len(answer.results)}
        log.info(self.event, extra={"context": facts})
        return Response(answer.as_wire())


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
