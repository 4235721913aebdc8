"""`/tools/*`: the tools and the repositories as JSON (docs/api.md)."""

from collections.abc import Callable

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.errors import InvalidInput
from apps.core.http.parsers import rendered
from apps.retrieval.paging import finished
from apps.retrieval.repositories import list_repositories
from apps.tools.tool import Tool, called_at


def view_of(tool: Tool) -> Callable[..., HttpResponse]:
    """The view of `POST /tools/<route>`. Unknown keys of the body are ignored (contract.md §4.2),
    and the output is not cut to CODEINFO_TOOL_MAX_CHARS."""

    class View(APIView):
        def post(self, request: Request) -> HttpResponse:
            body = request.data
            if not isinstance(body, dict):
                raise InvalidInput("the body must be a JSON object")
            arguments = {key: body[key] for key in tool.parameters["properties"] if key in body}
            with called_at(tool.route):
                return rendered(tool.hinted(finished(tool.function(arguments))))

    return View.as_view()


class IngestedReposView(APIView):
    """`GET /tools/ingested-repos` (contract.md §4.1)."""

    def get(self, request: Request) -> Response:
        return Response(list_repositories())
