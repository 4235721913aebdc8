"""The conversation routes (docs/contract.md §1.2)."""

from collections.abc import Callable, Sequence
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.conversations import memory, params, queries, ratings, services, tagging, wire
from apps.conversations.serializers import (
    NewConversation,
    NewRating,
    NewTags,
    NewTurn,
    refused,
    turn_fields,
)
from apps.conversations.stream import live_runs
from apps.core.errors import InvalidInput, NotFound

OK = {"status": "ok"}


def body_of(request: Request) -> Any:
    """The JSON body. Raises InvalidInput `validation_error` when it cannot be read."""
    try:
        return request.data
    except (ParseError, RecursionError) as error:
        raise refused("The body must be valid JSON.") from error


class Ascii(JSONRenderer):
    """Escapes what is not ASCII, so that no text a model made up can fail to be encoded."""

    ensure_ascii = True


class View(APIView):
    renderer_classes = (Ascii,)


class Conversations(View):
    """`/conversations`: list and create."""

    serializer_class = NewConversation

    def get(self, request: Request) -> Response:
        page = queries.conversations(**params.conversations(request.query_params))
        return Response(_page([wire.conversation(row) for row in page.items], page.next_cursor))

    def post(self, request: Request) -> Response:
        made = services.create(**NewConversation.read(body_of(request)))
        return Response({"conversationId": made.id}, status=201)


class Archive(View):
    archived = True  # False: restore

    def post(self, request: Request, conversation_id: str) -> Response:
        services.archive(conversation_id, archived=self.archived)
        return Response(OK)


class Turns(View):
    """`/conversations/<id>/turns`: all of them, or a page when `limit` or `cursor` is given."""

    serializer_class = NewTurn

    def get(self, request: Request, conversation_id: str) -> Response:
        query = request.query_params
        if "limit" in query or "cursor" in query:
            page = memory.turns_page(conversation_id, **params.read(query, params.TURNS))
            return Response(_page([wire.turn(row) for row in page.items], page.next_cursor))
        # The log first: a run that ends in between is then in the rows with its end.
        log = live_runs.visible(conversation_id)
        return Response(wire.history(memory.all_turns(conversation_id), log))

    def post(self, request: Request, conversation_id: str) -> Response:
        data = body_of(request)
        try:
            fields = turn_fields(NewTurn.read(data))
        except InvalidInput as error:
            raise refused({"body": error.details["details"]}) from error
        services.append_turn(conversation_id, **fields)
        return Response(OK, status=201)


class Rating(View):
    """`/conversations/<id>/turns/<turn id>/rating`"""

    serializer_class = NewRating

    def post(self, request: Request, conversation_id: str, turn_id: str) -> Response:
        ratings.rate(conversation_id, turn_id, NewRating.read(body_of(request))["rating"])
        return Response(OK)


class Tags(View):
    """`/conversations/<id>/tags`: all of them at once."""

    serializer_class = NewTags

    def post(self, request: Request, conversation_id: str) -> Response:
        texts = NewTags.read(body_of(request))["tags"]
        try:
            return Response({**OK, "tags": tagging.replace(conversation_id, texts)})
        except InvalidInput as error:
            raise refused({"tags": [error.message]}) from error


BULK: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "archive": (services.bulk_archive, "updatedCount"),
    "restore": (services.bulk_restore, "updatedCount"),
    "delete": (services.bulk_delete, "deletedCount"),
}


class Bulk(View):
    """`/conversations/bulk/<verb>`: all or nothing."""

    def post(self, request: Request, verb: str) -> Response:
        if verb not in BULK:
            raise NotFound("There is no such bulk operation.")
        work, counted = BULK[verb]
        return Response({**OK, counted: work(_ids(request))})


def _ids(request: Request) -> list[str]:
    try:
        data = request.data
    except (ParseError, RecursionError):
        data = None
    ids = data.get("conversationIds") if isinstance(data, dict) and len(data) == 1 else None
    if not isinstance(ids, list) or not ids or not all(isinstance(i, str) and i for i in ids):
        raise InvalidInput("conversationIds must be a non-empty array of strings.")
    return ids


def _page(items: list[dict[str, Any]], cursor: str | None) -> dict[str, Any]:
    return {"items": items} | ({"nextCursor": cursor} if cursor else {})
