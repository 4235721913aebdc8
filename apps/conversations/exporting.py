"""A conversation as a file."""

import json
import re
from collections.abc import Callable, Sequence

from django.http import HttpResponse
from django.template.loader import render_to_string

from apps.conversations.answers.exchange import Exchange
from apps.conversations.models import Conversation
from apps.conversations.renderers import html, standalone


def file_name(title: str) -> str:
    """A title as the name of a file, without the ending."""
    return re.sub(r"[^\w.-]+", "-", title).strip(".-")[:60] or "conversation"


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
            **({"rating": view.rating} if view.rating else {}),
            "parts": view.parts,
            "citations": [
                {"number": c.number, "path": c.passage.full_path, "start": c.start, "end": c.end}
                for c in html.cited(view)
            ],
        }
        for view in views
    ]
    named = {"conversationId": conversation.id, "title": conversation.title}
    body = {**named, "tags": conversation.tag_names, "turns": turns}
    return json.dumps(body, ensure_ascii=False, indent=2)


def as_html(conversation: Conversation, views: Sequence[Exchange]) -> str:
    title, sections = standalone.copied(conversation.title, views)
    return standalone.page(title, "".join(sections))


# Format → media type and writer.
FORMATS: dict[str, tuple[str, Callable[[Conversation, Sequence[Exchange]], str]]] = {
    "md": ("text/markdown", as_markdown),
    "json": ("application/json", as_json),
    "html": ("text/html", as_html),
}


def export(conversation: Conversation, views: Sequence[Exchange], kind: str) -> HttpResponse:
    """The conversation as a download. `kind`: a key of FORMATS."""
    title, text = conversation.title, FORMATS[kind][1](conversation, views)
    if kind == "html":  # it is passed on, and so is its name
        title, _ = standalone.copied(title, views)
    return attachment(title, kind, text)


def attachment(title: str, kind: str, text: str) -> HttpResponse:
    """A text as a download. `kind`: a key of FORMATS."""
    # Neither empty nor hidden, also without the letters that a header cannot have.
    name = file_name(title.encode("ascii", "ignore").decode())
    return HttpResponse(
        text,
        content_type=f"{FORMATS[kind][0]}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}.{kind}"'},
    )
