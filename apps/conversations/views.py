"""The chat page: its HTML, fragments and form posts. Answers are sent over the websocket."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_GET, require_POST

from apps.browse.sanitise import sanitise
from apps.conversations import (
    exporting,
    queries,
    recovery,
    runner,
    scope,
    services,
    sidebar,
    transcript,
    welcome,
)
from apps.conversations import flags as codex_flags
from apps.conversations.answers import diagrams, markdown
from apps.conversations.answers.exchange import exchange_of, exchanges_of
from apps.conversations.answers.standing import standing_of
from apps.conversations.chat_body import placed
from apps.conversations.models import VALID_ID, Conversation
from apps.conversations.picker import picker, refuse_without_tools
from apps.conversations.renderers import html
from apps.conversations.sidebar import SidebarQuery
from apps.conversations.stream import RunLog
from apps.conversations.types import StartTurn
from apps.core.error_map import status_of
from apps.core.errors import CodeinfoError, InvalidInput, NotFound, Unavailable
from apps.core.security.rate_limits import address_of, check_rate
from apps.core.system import disk
from apps.index import queries as ingest
from apps.retrieval.query import write_area
from apps.retrieval.repositories import repo_id


async def page(request: HttpRequest) -> HttpResponse:
    """`GET /chat[?c=<id>][?repo=<repository id>]`: a conversation, or a new one."""
    response: HttpResponse = await sync_to_async(_page)(request)
    return response


def _page(
    request: HttpRequest, draft: str = "", problem: CodeinfoError | None = None
) -> HttpResponse:
    shown = transcript.context(request.GET.dict())
    conversation: Conversation | None = shown["conversation"]
    if conversation is not None and conversation.agent_name:
        return redirect(transcript.address(conversation.id, conversation.agent_name))
    roots = [] if shown["away"] else ingest.published_roots()
    areas = scope.stored(conversation.flags) if conversation else scope.initial(request.GET)
    context = {
        **shown,
        "repositories": sorted(repo_id(root) for root in roots),
        "scope": scope.chips(areas),
        **welcome.context(roots, areas[0].repository if areas else ""),
        "draft": draft or request.GET.get("ask", "") or request.GET.get("q", ""),
        "problem": problem,
        "picker": _picker(conversation, request.GET),
        "page_keys": PAGE_KEYS,
        **sidebar.context(SidebarQuery(current=shown["conversation_id"])),
    }
    status = status_of(problem) if problem else 200
    return render(request, "conversations/page.html", context, status=status)


@require_GET
def questions(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/questions?root=<primary key>[&few=1]`: questions about a repository, of one
    click."""
    wanted = request.GET.get("root", "")
    root = next(
        (candidate for candidate in ingest.published_roots() if str(candidate.id) == wanted), None
    )
    if root is None:
        raise NotFound("This repository is not ingested.")
    most = welcome.FEW if "few" in request.GET else None
    context = {"root": root, "examples": welcome.examples(root, most)}
    context["heading"] = request.GET.get("heading", "")[:100] or welcome.heading(root)
    return render(request, "conversations/_questions.html", context)


@require_POST
async def ask(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/ask` `q`: start a conversation with a question, and lead to its page. If it
    cannot be asked, respond with a new chat that keeps it."""
    text = request.POST.get("q", "")
    chosen = await picker("", "", fixed=False, wait=True)
    conversation_id = str(uuid4())
    form = QueryDict(mutable=True)
    form.update({"c": conversation_id, "message": text})
    form.update({"provider": chosen.provider, "model": chosen.model})
    try:
        if chosen.reason:
            raise Unavailable(chosen.reason, code="PROVIDER_UNAVAILABLE")
        await _start(request, form)
    except CodeinfoError as error:
        response: HttpResponse = await sync_to_async(_page)(request, text, error)
        return response
    return redirect(transcript.address(conversation_id))


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
        log = await _start(request, form)
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


async def _start(request: HttpRequest, form: QueryDict) -> RunLog:
    check_rate("chat", address_of(request))
    question = _question(form)
    await refuse_without_tools(question.provider)
    return await runner.start(question)


def _question(form: QueryDict) -> StartTurn:
    """Raises InvalidInput."""
    conversation_id, model = form.get("c", ""), form.get("model", "")
    if not VALID_ID.match(conversation_id):
        raise InvalidInput("The conversation's id cannot be used.")
    message = form.get("message", "")
    if not message.strip():
        raise InvalidInput("message is required")
    if not model:
        raise InvalidInput("model is required")
    question = StartTurn(
        conversation_id=conversation_id,
        message=message,
        provider=form.get("provider", ""),
        model=model,
        flags=codex_flags.posted(form),
    )
    question = placed(question, form)
    if form.get("again"):
        return question  # its scope is stored with it
    areas = scope.posted(form)
    # Stored with the conversation, so that a reload keeps them.
    flags = {scope.SCOPE: list(map(write_area, areas)), **question.flags}
    return replace(question, areas=areas, flags=flags)


@require_POST
def branch(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/branch` `c=&turn=`: follow the branch of a turn. The websocket sends it."""
    try:
        conversation = queries.get(request.POST.get("c", ""))
        recovery.recover_stale(conversation.pk)
        services.follow(conversation.pk, request.POST.get("turn", ""))
    except CodeinfoError as error:
        return _problem(error)
    return HttpResponse(status=204)


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
def archive(request: HttpRequest, *, archived: bool) -> HttpResponse:
    conversation_id = request.POST.get("c", "")
    services.archive(conversation_id, archived=archived)
    text = f"Conversation {'archived' if archived else 'restored'}"
    return _toast(text, **{"chat:changed": {"ids": [conversation_id]}})


@require_POST
def pin(request: HttpRequest) -> HttpResponse:
    """`POST /ui/chat/pin` `c=&pinned=1|0`: show a conversation first, or not any more."""
    pinned = request.POST.get("pinned") == "1"
    services.pin(request.POST.get("c", ""), pinned=pinned)
    return _toast("Conversation pinned" if pinned else "Conversation unpinned")


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
def standing(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/standing?c=&turn=`: how many citations of an answer still hold."""
    turn = queries.answer(request.GET.get("c", ""), request.GET.get("turn", ""))
    if turn is None:
        return HttpResponse(status=204)
    context = {"standing": standing_of(html.cited(exchange_of(None, turn)))}
    return render(request, "conversations/_standing.html", context)


@require_GET
def export(request: HttpRequest) -> HttpResponse:
    """`GET /ui/chat/export?c=&format=md|json|html`: the conversation as a file."""
    conversation = queries.get(request.GET.get("c", ""))
    kind = request.GET.get("format", "")
    views = exchanges_of(queries.turns(conversation.id))
    return exporting.export(conversation, views, kind if kind in exporting.FORMATS else "md")
