"""What the start page of the admin tells of the last seven days."""

from datetime import timedelta
from typing import Any

from django import template
from django.db.models import Count
from django.utils import timezone

from apps.conversations import queries
from apps.conversations.models import Conversation, Turn
from apps.index.models import IngestRun, Root

DAYS = 7
LATEST = 5

register = template.Library()


@register.simple_tag
def last_week() -> dict[str, Any]:
    """conversations: that had a message; answers, runs: their number by status; tokens: that models
    have counted; failed_answers, failed_runs: the latest."""
    since = timezone.now() - timedelta(days=DAYS)
    conversations = Conversation.objects.filter(last_message_at__gte=since)
    # Over the conversations, as turns have no index by time alone.
    turns = Turn.objects.filter(conversation__in=conversations, created_at__gte=since).order_by()
    answers = turns.filter(role=Turn.Role.ASSISTANT)
    counted = answers.values_list("status").annotate(number=Count("id"), tokens=queries.TOKENS)
    by_status = {status: (number, tokens or 0) for status, number, tokens in counted}
    runs = IngestRun.objects.filter(queued_at__gte=since)
    failed = answers.filter(status=Turn.Status.FAILED).select_related("conversation")
    return {
        "conversations": conversations.count(),
        "answers": {status: number for status, (number, _) in by_status.items()},
        "tokens": sum(tokens for _, tokens in by_status.values()),
        "runs": dict(runs.order_by().values_list("state").annotate(Count("id"))),
        "repositories": Root.objects.published().count(),
        "failed_answers": list(failed.defer("parts", "text").order_by("-created_at")[:LATEST]),
        "failed_runs": list(runs.filter(state="error").order_by("-queued_at")[:LATEST]),
    }
