"""The initial content of a conversation's page."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.http import Http404
from django.utils.safestring import mark_safe

from apps.conversations import memory
from apps.conversations.answers.exchange import exchanges_of
from apps.conversations.models import VALID_ID, Conversation
from apps.conversations.renderers import html

# Older exchanges are loaded on request: hundreds take long to render.
SHOWN_EXCHANGES = 60
# A numbered row of conversations/_turn.html.
CITED_ROW = ' data-cite="'


def context(query: Mapping[str, str]) -> dict[str, Any]:
    """The context for `?c=&all=`: the conversation, or a new id if `c` is not valid.

    Raises Http404 for the conversation of another user.
    """
    requested_id = query.get("c", "")
    conversation_id = requested_id if VALID_ID.match(requested_id) else str(uuid4())
    state = memory.load(conversation_id)
    if state.forbidden:
        raise Http404
    views = exchanges_of(state.turns)
    shown = views if query.get("all") else views[-SHOWN_EXCHANGES:]
    articles = [html.exchange(view) for view in shown]
    # What opens by itself has its room from the first paint on (static/js/chat/viewer.js).
    has_sources = bool(shown) and not shown[-1].running and CITED_ROW in articles[-1]
    return {
        "conversation_id": conversation_id,
        "conversation": state.conversation,
        # A link to one that was deleted; a new one has no id in its address.
        "is_gone": bool(requested_id) and not (state.conversation or state.turns or state.away),
        "away": state.away,
        "full": state.full,
        "articles": [mark_safe(article) for article in articles],
        "opens_source": has_sources or bool(query.get("repo") and query.get("path")),
        "earlier": len(views) - len(shown),
        "whole": whole(conversation_id, state.conversation),
        "running": any(view.running for view in views),
    }


def whole(conversation_id: str, conversation: Conversation | None) -> str:
    """The URL of a conversation with all exchanges of the branch that is followed."""
    return address(conversation_id, conversation.agent_name if conversation else "") + "&all=1"


def address(conversation_id: str, agent: str = "") -> str:
    """The URL of a conversation: on the page of its agent, or of the chat."""
    page = f"/agents?{urlencode({'a': agent})}&" if agent else "/chat?"
    return page + urlencode({"c": conversation_id})
