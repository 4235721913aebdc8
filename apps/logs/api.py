"""`POST /logs`, `GET /logs` and `GET /logs/stream` (contract.md §9)."""

from typing import Any

from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.views.decorators.http import require_GET
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.core.config import config
from apps.core.security.access import check_length
from apps.logs import stream
from apps.logs.serializers import EntrySerializer
from apps.logs.store import get_store
from apps.logs.types import LogQuery


class EntriesView(APIView):
    """POST stores one or several entries, all or none. GET returns entries that match filters."""

    def post(self, request: Request) -> JsonResponse:
        check_length(len(request.body), config().log_max_client_bytes)
        store = get_store()
        sequence = 0
        for entry in EntrySerializer.parse(request.data):
            sequence = store.add(entry, client=True)
        return JsonResponse({"status": "accepted", "sequence": sequence}, status=202)

    def get(self, request: Request) -> JsonResponse:
        query = LogQuery.read(request.GET)
        selection = get_store().select(query)
        body: dict[str, Any] = {
            "items": [entry.data for entry in selection.entries],
            "lastSequence": selection.last,
            "hasMore": len(selection.entries) == query.limit and selection.entries[0].sequence > 1,
        }
        return JsonResponse(body)


@require_GET
async def stream_entries(request: HttpRequest) -> StreamingHttpResponse:
    """Stream entries: first up to 200 stored ones after the given number, then new ones."""
    query = LogQuery.read(request.GET)
    after = stream.resume_point(request, query)
    return stream.response(stream.json_frames(get_store(), query, after))
