"""The Agents page: its HTML and form posts. Answers are sent over the chat's websocket."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import async_to_sync, sync_to_async
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_POST, require_safe

from apps.agent_runs import api, commands, definitions, starting
from apps.agent_runs.definitions import AUTO, Agent
from apps.agent_runs.rights import facts
from apps.agent_runs.starting import AgentRequest
from apps.agents.providers import registry
from apps.conversations import queries, runner, sidebar, transcript
from apps.conversations.answers import markdown
from apps.conversations.chat_body import placed
from apps.conversations.models import VALID_ID, Conversation
from apps.conversations.picker import Picker, picker
from apps.conversations.sidebar import SidebarQuery
from apps.conversations.stream import RunLog
from apps.conversations.views import PAGE_KEYS
from apps.core.config import config
from apps.core.error_map import status_of
from apps.core.errors import CodeinfoError, InvalidInput, Unavailable
from apps.core.security.access import wants_html
from apps.core.security.rate_limits import address_of, check_rate
from apps.core.values.surrogates import storable

ELSEWHERE = (
    "This conversation already has a run in progress in another tab/window. "
    "Stop it there, or wait for its end."
)


@require_safe
async def agents_view(request: HttpRequest) -> HttpResponseBase:
    """`GET /agents`: the page if text/html is accepted, else the list as JSON."""
    response: HttpResponse = (
        await sync_to_async(_page)(request) if wants_html(request) else await api.listing(request)
    )
    patch_vary_headers(response, ["Accept"])
    return response


def _page(request: HttpRequest) -> HttpResponse:
    """`?a=<agent>&c=<conversation>`: a conversation of an agent, or a new one."""
    requested_name = request.GET.get("a", "")
    shown = transcript.context(request.GET.dict())
    conversation: Conversation | None = shown["conversation"]
    if conversation is not None and conversation.agent_name != requested_name:
        return redirect(transcript.address(conversation.id, conversation.agent_name))
    agents, away = _agents()
    agent = _chosen(agents, requested_name)
    missing = bool(requested_name) and agent is None
    owner_name = agent.name if agent else requested_name or NOBODY
    context = {
        "agents": agents,
        "agent": agent,
        "unreadable": away,
        "missing": missing,
        "requested_agent": requested_name,
        "agents_home": config().agents_home,
        "page_keys": PAGE_KEYS,
        "untitled": "" if agent and not agent.problem else "Agents",
        "page_address": f"/agents?{urlencode({'a': agent.name})}" if agent else "/agents",
        **shown,
        **_about(agent, conversation),
        **sidebar.context(SidebarQuery(current=shown["conversation_id"], agent=owner_name)),
    }
    # The conversations of a removed agent can still be read.
    status = 404 if missing and conversation is None else 200
    return render(request, "conversations/agents/page.html", context, status=status)


PICKER = "/ui/agents/picker"
MAX_MODEL = 255
FIRST_AVAILABLE = "First available provider"
# Agent name for the sidebar of a page without an agent; no conversation has it.
NOBODY = "__nobody__"


def _agents() -> tuple[tuple[Agent, ...], Unavailable | None]:
    try:
        return definitions.all_agents(), None
    except Unavailable as error:
        return (), error


def _chosen(agents: tuple[Agent, ...], name: str) -> Agent | None:
    if name:
        return next((agent for agent in agents if agent.name == name), None)
    return min(agents, key=lambda agent: bool(agent.problem), default=None)


def _about(agent: Agent | None, conversation: Conversation | None) -> dict[str, Any]:
    if agent is None:
        return {}
    provider = registry.providers().get(agent.provider)
    return {
        "description": markdown.plain(agent.description),
        "provider": provider.label if provider else FIRST_AVAILABLE,
        "facts": list(facts(agent)),
        "works_in_folder": agent.may_be_codex,
        "picker": async_to_sync(_picker)(agent, conversation),
        "picker_url": PICKER,
    }


async def _picker(
    agent: Agent,
    conversation: Conversation | None,
    provider: str = "",
    model: str = "",
    *,
    wait: bool = False,
) -> Picker:
    """Who may answer. The provider of a conversation is fixed; the definition's is chosen first."""
    fixed = conversation is not None
    own = "" if agent.provider == AUTO else agent.provider
    chosen = conversation.provider if conversation else provider or own
    model = model or (conversation.model if conversation else "")
    if chosen == agent.provider:
        model = model or agent.model
    offered = await picker(chosen, model, fixed=fixed, wait=wait)
    return _for_agents(offered, model)


def _for_agents(found: Picker, model: str) -> Picker:
    """Without the Codex flags, which agents have in their own configuration."""
    return replace(found.with_model(model), flags=[])


@require_safe
def picker_fragment(request: HttpRequest) -> HttpResponse:
    """`GET /ui/agents/picker?a=&c=&provider=`: the picker after a change of the provider."""
    form = request.GET
    agent = definitions.agent_named(form.get("a", ""))
    conversation = queries.visible().filter(pk=form.get("c", "")).first()
    offered = async_to_sync(_picker)(agent, conversation, form.get("provider", ""), wait=True)
    context = {"picker": offered, "picker_url": PICKER, "conversation_id": form.get("c", "")}
    return render(request, "conversations/_picker.html", context)


@require_POST
async def send(request: HttpRequest) -> HttpResponse:
    """`POST /ui/agents/send`: run an instruction. Its turns are sent over the websocket."""
    form = request.POST
    try:
        check_rate("chat", address_of(request))
        text = form.get("message", "")
        if not text.strip():
            raise InvalidInput("Write an instruction first.")
        question = await starting.instruction(_agent_request(form), text)
        log = await runner.start(placed(question, form))
    except CodeinfoError as error:
        return _problem(error)
    return await _sent(form, log)


@require_POST
async def execute(request: HttpRequest) -> HttpResponse:
    """`POST /ui/agents/execute`: run a command. Its steps are sent over the websocket."""
    form = request.POST
    try:
        check_rate("chat", address_of(request))
        if not form.get("command"):
            raise InvalidInput("Choose a command first.")
        steps = await starting.command(_agent_request(form), form["command"])
        execution = await commands.start(steps)
    except CodeinfoError as error:
        return _problem(error)
    # Text in the composer is not part of the command and stays.
    return await _sent(form, execution.log, keepsDraft=True)


def _agent_request(form: QueryDict) -> AgentRequest:
    """Raises InvalidInput."""
    conversation_id = form.get("c", "")
    if not VALID_ID.match(conversation_id):
        raise InvalidInput("The conversation's id cannot be used.")
    model = form.get("model", "")
    if len(model) > MAX_MODEL:
        raise InvalidInput(f"model must be at most {MAX_MODEL} characters")
    return AgentRequest(
        form.get("a", ""),
        conversation_id,
        form.get("working_folder") or None,
        provider=form.get("provider", ""),
        model=storable(model),
    )


async def _sent(form: QueryDict, log: RunLog, **more: Any) -> HttpResponse:
    # The provider of an existing conversation is fixed.
    fixed = await picker(log.provider, log.model, fixed=True, wait=False)
    context = {
        "picker": _for_agents(fixed, log.model),
        "picker_url": PICKER,
        "conversation_id": log.conversation_id,
    }
    return HttpResponse(
        render_to_string("conversations/agents/_sent.html", context),
        headers={
            "HX-Push-Url": transcript.address(log.conversation_id, form.get("a", "")),
            "HX-Trigger": json.dumps({"chat:sent": {"turn": log.turn_id, **more}}),
        },
    )


def _problem(error: CodeinfoError) -> HttpResponse:
    """An error message above the composer; the page keeps its state."""
    message = ELSEWHERE if error.code == "RUN_IN_PROGRESS" else error.message
    context = {"message": message, "code": error.code}
    body = render_to_string("conversations/agents/_problem.html", context)
    return HttpResponse(body, status=status_of(error), headers={"X-Problem": error.code})
