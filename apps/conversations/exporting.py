"""A conversation as a file."""

import json
import re
from collections.abc import Callable, Sequence

from django.template.loader import render_to_string

from apps.conversations.answers.exchange import Exchange
from apps.conversations.models import Conversation
from apps.conversations.renderers import html


def file_name(conversation: Conversation) -> str:
    """Its title as the name of a file, without the ending."""
    return re.sub(r"[^\w.-]+", "-", conversation.title).strip("-")[:60] or "conversation"


def as_markdown(conversation: Conversation, views: Sequence[Exchange]) -> str:
    context = {"conversation": conversation, "exchanges": [(v, html.cited(v)) for v in views]}
    return render_to_string("conversations/export.md", context)


def as_json(conversation: Conversation, views: Sequence[Exchange]) -> str:
    turns = [
        {
            "question": view.question,
            "answer": view.answer_text,
            "status": view.status,
            "createdAt": view.at.isoformat(),
            "provider": view.provider,
            "model": view.model,
            "parts": view.parts,
            "citations": [
                {"number": c.number, "path": c.passage.full_path, "start": c.start, "end": c.end}
                for c in html.cited(view)
            ],
        }
        for view in views
    ]
    body = {"conversationId": conversation.id, "title": conversation.title, "turns": turns}
    return json.dumps(body, ensure_ascii=False, indent=2)


# Format → media type and writer.
FORMATS: dict[str, tuple[str, Callable[[Conversation, Sequence[Exchange]], str]]] = {
    "md": ("text/markdown", as_markdown),
    "json": ("application/json", as_json),
}
