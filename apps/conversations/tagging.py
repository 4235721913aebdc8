"""Tags are given to conversations, and taken from them: the verbs and their forms on the page."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from apps.conversations import queries, tags
from apps.conversations.models import Conversation
from apps.conversations.services import changed, checked_batch
from apps.core.errors import InvalidInput

Combine = Callable[[set[str], set[str]], set[str]]

# Conversations that are read for `known`, newest first.
MAX_READ = 1_000


def known() -> list[str]:
    """The tags of the conversations of the current user, in order."""
    rows = queries.visible().exclude(tags="").order_by("-last_message_at")
    columns = set(rows.values_list("tags", flat=True)[:MAX_READ])
    return sorted({name for column in columns for name in column.split()})


def replace(conversation_id: str, texts: Iterable[str]) -> list[str]:
    """Give a conversation these tags and no others. Returns them as they are stored.

    Raises NotFound, InvalidInput.
    """
    queries.get(conversation_id)
    column = tags.column(map(tags.normalised, texts))
    Conversation.objects.filter(pk=conversation_id).update(tags=column)
    changed(conversation_id)
    return column.split()


def change(ids: Sequence[str], text: str, combine: Combine) -> int:
    """Give all conversations a tag, or take it from those that have it; or none. Returns the number
    of conversations.

    combine: the tags that one has, and the tag, to those that it gets.

    Raises InvalidInput, and Conflict BATCH_CONFLICT as `services.bulk_archive` does.
    """
    tag = {tags.normalised(text)}
    batch = checked_batch(ids)
    left = set(batch)
    while left:
        groups: dict[str, set[str]] = defaultdict(set)
        for pk, column in Conversation.objects.filter(pk__in=left).values_list("pk", "tags"):
            groups[column].add(pk)
        # All of them before the first write, which is not made if one is refused.
        after = {column: tags.column(combine(set(column.split()), tag)) for column in groups}
        left = set()
        for column, group in groups.items():
            rows = Conversation.objects.filter(pk__in=group, tags=column)
            if after[column] != column and rows.update(tags=after[column]) < len(group):
                left |= group  # another request has changed one meanwhile
    changed(*batch)
    return len(batch)


VERBS: dict[str, tuple[Combine, str]] = {
    "add": (set.union, "Tagged"),
    "remove": (set.difference, "Untagged"),
}


@require_GET
def dialog(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/tags?c=`: the dialog of a conversation's tags."""
    context = {"conversation": queries.get(request.GET.get("c", ""))}
    return render(request, "conversations/_tags.html", context)


@require_POST
def form(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/tag` `c=&tag=&do=add|remove`: the content of the dialog after it."""
    conversation = queries.get(request.POST.get("c", ""))
    combine, _ = _verb(request)
    text = request.POST.get("tag", "")
    context: dict[str, Any] = {"conversation": conversation}
    try:
        change([conversation.pk], text, combine)
        conversation.refresh_from_db(fields=["tags"])
    except InvalidInput as error:
        context |= {"error": error, "typed": text}
    status = 422 if "error" in context else 200
    return render(request, "conversations/_tags_form.html", context, status=status)


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/bulk/tag` `id=…&id=…&tag=&do=add|remove`: all conversations, or none."""
    combine, past_tense = _verb(request)
    count = change(request.POST.getlist("id"), request.POST.get("tag", ""), combine)
    text = f"{past_tense} {count} conversation{'' if count == 1 else 's'}"
    trigger = {"toast": {"text": text}, "chat:bulk": {}}
    return HttpResponse(status=204, headers={"HX-Trigger": json.dumps(trigger)})


def _verb(request: HttpRequest) -> tuple[Combine, str]:
    return VERBS.get(request.POST.get("do", ""), VERBS["add"])
