"""`/tools/*`: the search and the list of repositories as JSON (docs/retrieval.md)."""

import json
import logging
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.retrieval.repositories import list_repositories
from apps.retrieval.search import search
from apps.retrieval.types import SearchQuery
from codeinfo.access import MAX_BODY
from codeinfo.errors import InvalidInput

log = logging.getLogger("codeinfo.retrieval")


class VectorSearchView(APIView):
    """`POST /tools/vector-search {query, repository?, limit?}`; other keys are ignored."""

    def post(self, request: Request) -> Response:
        query = SearchQuery.parse(_body(request))
        result = search(query)
        facts = {**query.as_log(), "results": len(result.matches), "modelId": result.model_id}
        log.info("tools vector search", extra={"context": facts})
        return Response(result.as_wire())


class IngestedReposView(APIView):
    """`GET /tools/ingested-repos`."""

    def get(self, request: Request) -> Response:
        return Response(list_repositories())


def _body(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object. Raises InvalidInput.

    Not `request.data`: that takes a body without a Content-Length (a chunked one) for no body.
    """
    raw: bytes = request.body
    if len(raw) > MAX_BODY:
        raise InvalidInput(f"the body is larger than {MAX_BODY} bytes", code="PAYLOAD_TOO_LARGE")
    try:
        body = json.loads(raw, parse_constant=_no_constant) if raw else {}
    except (ValueError, RecursionError):
        raise InvalidInput("the body is not valid JSON") from None
    if not isinstance(body, dict):
        raise InvalidInput("the body must be a JSON object")
    return body


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
