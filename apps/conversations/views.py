"""The chat page: its HTML, fragments and form posts. Answers are sent over the websocket."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET, require_POST

from apps.conversations import flags as codex_flags
from apps.conversations import queries, runner, scope, services, sidebar, transcript
from apps.conversations.answers import diagrams, markdown
from apps.conversations.answers.exchange import Exchange, exchanges_of
from apps.conversations.answers.sanitise import sanitise
from apps.conversations.models import ID_PATTERN, Conversation
from apps.conversations.picker import picker, refuse_without_tools
from apps.conversations.renderers import html
from apps.conversations.sidebar import SidebarQuery
from apps.conversations.types import StartTurn
from apps.core import disk
from apps.core.config import BASE_DIR
from apps.core.error_map import status_of
from apps.core.errors import CodeinfoError, InvalidInput, NotFound
from apps.core.rate_limits import address_of, check_rate
from apps.index import queries as ingest
from apps.index.models import Root
from apps.retrieval.query import write_area
from apps.retrieval.repositories import repo_id

# Examples for this project's source, which the first start ingests, and for other repositories.
OWN_EXAMPLES = (
    "How does a chat answer get from the model to the page?",
    "What happens to half-read files when an ingest run is killed?",
    "Where is the distance cutoff applied to search results?",
)
EXAMPLES = (
    "Where does {name} start, and what happens first?",
    "What are the main parts of {name}, and how do they work together?",
    "How are errors handled in {name}?",
)
SHOWN_EXAMPLES = 4


async def page(request: HttpRequest) -> HttpResponse:
    """`GET /chat[?c=<id>]`: a conversation, or a new one."""
    response: HttpResponse = await sync_to_async(_page)(request)
    return response


def _page(request: HttpRequest) -> HttpResponse:
    shown = transcript.context(request.GET.dict())
    conversation: Conversation | None = shown["conversation"]
    if conversation is not None and conversation.agent_name:
        return redirect(transcript.address(conversation.id, conversation.agent_name))
    roots = [] if shown["away"] else ingest.published_roots()
    context = {
        **shown,
        "repositories": sorted(repo_id(root) for root in roots),
        "examples": examples(roots),
        "scope": scope.chips(
            scope.stored(conversation.flags) if conversation else scope.initial(request.GET)
        ),
        "picker": _picker(conversation, request.GET),
        "page_keys": PAGE_KEYS,
        **sidebar.context(SidebarQuery(current=shown["conversation_id"])),
    }
    return render(request, "conversations/page.html", context)


def examples(roots: Sequence[Root]) -> list[str]:
    """Example questions about the ingested repositories, one of each in turn."""
    by_root = (
        OWN_EXAMPLES
        if root.path == str(BASE_DIR)
        else [example.format(name=repo_id(root)) for example in EXAMPLES]
        for root in roots
    )
    rounds = zip(*by_root, strict=True)
    return list(islice(chain.from_iterable(rounds), SHOWN_EXAMPLES))


PAGE_KEYS = (
    (("Enter",), "Send"),
    (("Shift", "Enter"), "New line"),
    (("[",), "Previous citation"),
    (("]",), "Next citation"),
    (("\\",), "Show or hide the source viewer"),
    (("r",), "Regenerate"),
    (("F2",), "Rename"),
    (("Esc",), "Stop the answer"),
)


def _picker(conversation: Conversation | None, chosen: QueryDict, wait: bool = False) -> Any:
    fixed = conversation is not None
    provider = conversation.provider if conversation else chosen.get("provider", "")
    model = chosen.get("model") or (conversation.model if conversation else "")
    flags = conversation.flags if conversation else {}
    if codex_flags.SHOWN in chosen:
        flags = codex_flags.posted(chosen)
    return async_to_sync(picker)(provider, model, fixed=fixed, wait=wait, chosen=flags)


@require_GET
def picker_fragment(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/picker?c=&provider=&model=`: the picker after a change of its values."""
    conversation = queries.visible().filter(pk=request.GET.get("c", "")).first()
    context = {"picker": _picker(conversation, request.GET, wait=True)}
    context["conversation_id"] = request.GET.get("c", "")
    return render(request, "conversations/_picked.html", context)


@require_GET
def sidebar_fragment(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/sidebar?state=&q=&n=&c=&a=`: the list, and the open conversation's title."""
    query = SidebarQuery.read(request.GET.dict())
    context = sidebar.context(query)
    if "away" not in context:
        context["conversation"] = queries.visible().filter(pk=query.current).first()
    return render(request, "conversations/_sidebar.html", context)


@require_POST
async def send(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/send`: start a run. Its turns are sent over the websocket."""
    form = request.POST
    conversation_id = form.get("c", "")
    try:
        check_rate("chat", address_of(request))
        question = _question(form)
        await refuse_without_tools(question.provider)
        log = await runner.start(question)
    except CodeinfoError as error:
        return _problem(error)
    # The provider of an existing conversation is fixed.
    fixed = await picker(log.provider, log.model, fixed=True, wait=False)
    # Not the state of the run, which may have ended; the websocket sends it.
    away = not log.stored
    full = away and await sync_to_async(disk.has_no_room)()
    sent = {"picker": fixed, "away": away, "full": full, "oob": True}
    body = render_to_string("conversations/_sent.html", sent | {"conversation_id": conversation_id})
    return HttpResponse(
        body,
        headers={
            "HX-Push-Url": f"/chat?c={conversation_id}",
            "HX-Trigger": json.dumps({"chat:sent": {"turn": log.turn_id}}),
        },
    )


def _question(form: QueryDict) -> StartTurn:
    """Raises InvalidInput."""
    conversation_id, model = form.get("c", ""), form.get("model", "")
    if not re.match(ID_PATTERN, conversation_id):
        raise InvalidInput("The conversation's id cannot be used.")
    message = form.get("message", "")
    if not message.strip():
        raise InvalidInput("message is required")
    if not model:
        raise InvalidInput("model is required")
    areas = scope.posted(form)
    return StartTurn(
        conversation_id=conversation_id,
        message=message,
        provider=form.get("provider", ""),
        model=model,
        areas=areas,
        # Stored with the conversation, so that a reload keeps them.
        flags={scope.SCOPE: list(map(write_area, areas)), **codex_flags.posted(form)},
        replaces=form.get("retry", ""),
    )


def _problem(error: CodeinfoError) -> HttpResponse:
    """An error message above the composer; the page keeps its state."""
    body = render_to_string("conversations/_problem.html", {"error": error})
    return HttpResponse(body, status=status_of(error), headers={"X-Problem": error.code})


@require_POST
async def stop(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/stop`: stop the run of a conversation."""
    await runner.cancel(request.POST.get("c", ""))
    return HttpResponse(status=204, headers={"HX-Trigger": "chat:stopped"})


def _toast(text: str, **more: Any) -> HttpResponse:
    trigger = {"toast": {"text": text}, **more}
    return HttpResponse(status=204, headers={"HX-Trigger": json.dumps(trigger)})


@require_POST
def archive(request: HttpRequest) -> HttpResponse:
    conversation_id = request.POST.get("c", "")
    services.archive(conversation_id)
    return _toast("Conversation archived", **{"chat:changed": {"ids": [conversation_id]}})


@require_POST
def restore(request: HttpRequest) -> HttpResponse:
    conversation_id = request.POST.get("c", "")
    services.restore(conversation_id)
    return _toast("Conversation restored", **{"chat:changed": {"ids": [conversation_id]}})


@require_POST
def rename(request: HttpRequest) -> HttpResponse:
    services.rename(request.POST.get("c", ""), request.POST.get("title", ""))
    return _toast("Conversation renamed")


@require_POST
def delete(request: HttpRequest) -> HttpResponse:
    """Delete an archived conversation; as in the API, active ones are refused."""
    conversation_id = request.POST.get("c", "")
    services.bulk_delete([conversation_id])
    return _toast("Conversation deleted", **{"chat:deleted": {"ids": [conversation_id]}})


# Verb → service, past tense for the message, event for the page.
BULK: dict[str, tuple[Callable[[Sequence[str]], int], str, str]] = {
    "archive": (services.bulk_archive, "Archived", "chat:changed"),
    "restore": (services.bulk_restore, "Restored", "chat:changed"),
    "delete": (services.bulk_delete, "Deleted", "chat:deleted"),
}


@require_POST
def bulk(request: HttpRequest, verb: str) -> HttpResponse:
    """`POST /ui/chat/bulk/<verb>` `id=…&id=…`: all conversations, or BATCH_CONFLICT and none."""
    if verb not in BULK:
        raise NotFound("There is no such bulk operation.")
    work, past_tense, event = BULK[verb]
    ids = request.POST.getlist("id")
    count = work(ids)
    text = f"{past_tense} {count} conversation{'' if count == 1 else 's'}"
    return _toast(text, **{event: {"ids": ids}, "chat:bulk": {}})


@require_GET
def actions(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/actions?c=`: the menu of a conversation."""
    conversation = queries.get(request.GET.get("c", ""))
    return render(request, "conversations/_menu.html", {"conversation": conversation})


@require_POST
def diagram(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/diagram`: a mermaid source as an image, or why it cannot be drawn."""
    source = request.POST.get("source", "")
    diagrams.draw(source)
    return HttpResponse(sanitise(markdown.diagram(source)))


@require_GET
def export(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/export?c=&format=md|json`: the conversation as a file."""
    conversation = queries.get(request.GET.get("c", ""))
    kind = "json" if request.GET.get("format") == "json" else "md"
    views = exchanges_of(queries.turns(conversation.id))
    media, write = EXPORTS[kind]
    name = re.sub(r"[^\w.-]+", "-", conversation.title).strip("-")[:60] or "conversation"
    disposition = f'attachment; filename="{name.encode("ascii", "ignore").decode()}.{kind}"'
    return HttpResponse(
        write(conversation, views),
        content_type=f"{media}; charset=utf-8",
        headers={"Content-Disposition": disposition},
    )


def _as_markdown(conversation: Conversation, views: list[Exchange]) -> str:
    context = {"conversation": conversation, "exchanges": [(v, html.cited(v)) for v in views]}
    return render_to_string("conversations/export.md", context)


def _as_json(conversation: Conversation, views: list[Exchange]) -> str:
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


EXPORTS: dict[str, tuple[str, Callable[[Conversation, list[Exchange]], str]]] = {
    "md": ("text/markdown", _as_markdown),
    "json": ("application/json", _as_json),
}
