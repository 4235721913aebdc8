"""`/tools/*`: the search and the list of repositories as JSON (docs/retrieval.md)."""

import logging
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.errors import InvalidInput
from apps.core.parsers import rendered
from apps.retrieval.query import SearchQuery
from apps.retrieval.repositories import list_repositories
from apps.retrieval.search import search

log = logging.getLogger("codeinfo.retrieval")


class VectorSearchView(APIView):
    """`POST /tools/vector-search {query, repository?, path?, language?, limit?}`; other keys are
    ignored."""

    def post(self, request: Request) -> HttpResponse:
        query = SearchQuery.parse(object_of(request))
        result = search(query)
        facts = {**query.as_log(), "results": len(result.matches), "modelId": result.model_id}
        log.info("tools vector search", extra={"context": facts})
        return rendered(result.as_wire())


class IngestedReposView(APIView):
    """`GET /tools/ingested-repos`."""

    def get(self, request: Request) -> Response:
        return Response(list_repositories())


def object_of(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object. Raises InvalidInput."""
    body = request.data
    if not isinstance(body, dict):
        raise InvalidInput("the body must be a JSON object")
    return body
