"""A reader rates an answer: good, bad or neither. The rating belongs to the turn."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from apps.conversations import queries
from apps.conversations.answers.exchange import exchange_of
from apps.conversations.models import Turn
from apps.core.errors import InvalidInput, NotFound


def rate(conversation_id: str, turn_id: str, rating: int | None) -> Turn:
    """Rate a stored answer, or withdraw its rating. Raises NotFound."""
    turn = queries.answer(conversation_id, turn_id)
    if turn is None:
        raise NotFound("Answer not found.")
    Turn.objects.filter(pk=turn.pk).update(rating=rating)
    turn.rating = rating
    return turn


RATINGS = {"": None} | {str(rating.value): rating.value for rating in Turn.Rating}


@require_POST
def form(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/rate` `c=&turn=&rating=1|-1|`: the buttons of an answer after it."""
    rating = request.POST.get("rating", "")
    if rating not in RATINGS:
        raise InvalidInput("rating must be 1, -1 or empty.")
    turn = rate(request.POST.get("c", ""), request.POST.get("turn", ""), RATINGS[rating])
    context = {"turn": exchange_of(None, turn)}
    return render(request, "conversations/_rating.html", context)
