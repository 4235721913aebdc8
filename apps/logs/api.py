"""`POST /logs`, `GET /logs` and `GET /logs/stream` (docs/contract.md §9)."""

from typing import Any

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.core.config import config
from apps.core.errors import InvalidInput
from apps.logs import stream
from apps.logs.serializers import EntrySerializer
from apps.logs.store import get_store
from apps.logs.types import LogQuery


class Entries(APIView):
    """Entries in, one or many, all or none of them; entries out, by filters."""

    def post(self, request: Request) -> JsonResponse:
        if len(request.body) > config().log_max_client_bytes:
            raise InvalidInput("The body is too large.", code="PAYLOAD_TOO_LARGE")
        store = get_store()
        sequence = 0
        for entry in EntrySerializer.parse(request.data):
            sequence = store.keep(entry, client=True)
        return JsonResponse({"status": "accepted", "sequence": sequence}, status=202)

    def get(self, request: Request) -> JsonResponse:
        query = LogQuery.read(request.GET)
        found = get_store().select(query)
        body: dict[str, Any] = {
            "items": [entry.data for entry in found.entries],
            "lastSequence": found.last,
            "hasMore": len(found.entries) == query.limit and found.entries[0].sequence > 1,
        }
        return JsonResponse(body)


@require_GET
async def follow(request: HttpRequest) -> StreamingHttpResponse:
    """What there is, at most 200 entries after the one named, and then each as it comes."""
    query = LogQuery.read(request.GET)
    after = stream.resume_point(request, query)
    return stream.response(stream.json_frames(get_store(), query, after))
