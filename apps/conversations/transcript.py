"""A conversation as its page first shows it."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.http import Http404
from django.utils.safestring import mark_safe

from apps.conversations import memory
from apps.conversations.answers.exchange import exchanges_of
from apps.conversations.models import ID_PATTERN
from apps.conversations.renderers import html

# Older exchanges are a click away: a page of hundreds takes its time to draw.
SHOWN_EXCHANGES = 60


def context(asked: Mapping[str, str]) -> dict[str, Any]:
    """`?c=&all=`: the conversation, or a new one under an id that is ready to be used.

    Raises Http404 for a conversation of somebody else.
    """
    wanted = asked.get("c", "")
    conversation_id = wanted if re.match(ID_PATTERN, wanted) else str(uuid4())
    seen = memory.seen(conversation_id)
    if seen.forbidden:
        raise Http404
    views = exchanges_of(seen.turns)
    shown = views if asked.get("all") else views[-SHOWN_EXCHANGES:]
    return {
        "conversation_id": conversation_id,
        "conversation": seen.conversation,
        "away": seen.away,
        "full": seen.full,
        "articles": [mark_safe(html.exchange(view)) for view in shown],
        "earlier": len(views) - len(shown),
        "running": any(view.running for view in views),
    }


def address(conversation_id: str, agent: str = "") -> str:
    """Where a conversation is shown: on its agent's page, or the chat's."""
    page = f"/agents?{urlencode({'a': agent})}&" if agent else "/chat?"
    return page + urlencode({"c": conversation_id})
