"""The home page and the Connect page."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.apps import apps as django_apps
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.agent_runs.definitions import all_agents
from apps.agents.providers import registry
from apps.browse.front_page import language_bar
from apps.conversations.queries import recent_questions
from apps.core.config import config
from apps.core.errors import Unavailable
from apps.core.security.local_users import is_on_this_machine
from apps.core.system.command_lines import install_extra
from apps.core.values.surrogates import encodable
from apps.index import queries
from apps.ingest.runs import orphans
from apps.mcp.availability import default_provider, gate
from apps.site import health, overview, palette
from apps.site.connect import CLIENTS, endpoints, install_link
from codeinfo_cli.clients.launch import this_installation

# Repositories of the home page with a bar of their languages, and questions.
MAX_BARS, MAX_QUESTIONS = 20, 6


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Repositories, questions, versions and storage. The page requests `connected` itself."""
    stored = _stored()
    versions = overview.versions()
    facts = {**versions, **stored.get("storage", {})}
    context = {
        "roots": None,
        "versions": versions,
        # Lines for a bug report.
        "report": "\n".join(f"{label}: {value}" for label, value in facts.items()),
        "uptime": timedelta(seconds=health.uptime_seconds()),
        "data_dir": config().data_dir,
        **stored,
    }
    return render(request, "site/home.html", context)


def _stored() -> dict[str, Any]:
    """What the database knows; {} if it is unavailable."""
    try:
        roots = queries.published_roots()
        return {
            "roots": roots,
            "rows": [
                (root, language_bar(root) if number < MAX_BARS else [])
                for number, root in enumerate(roots)
            ],
            "storage": overview.storage(),
            "first": "" if roots else next(iter(queries.names_being_ingested()), ""),
            "questions": recent_questions(MAX_QUESTIONS),
            "unknown": orphans.unknown_folders(),
        }
    except DatabaseError:
        return {}


@require_GET
async def connected(request: HttpRequest) -> HttpResponse:
    """Fragment: the list "What is connected", from new checks."""
    services = await health.thorough()
    wrong = [one.name for one in services if one.level in ("bad", "warn")]
    return render(request, "site/_connected.html", {"services": services, "wrong": wrong})


@require_GET
def palette_results(request: HttpRequest) -> HttpResponse:
    """Fragment: `GET /ui/palette?q=`, what the command palette finds; with `part=meaning` what it
    finds by meaning, which the first fragment asks for."""
    text = " ".join(encodable(request.GET.get("q", "")).replace("\0", " ").split())
    text = text[: palette.MAX_TEXT]
    if not text:
        return HttpResponse()
    if request.GET.get("part") == "meaning":
        return render(request, "_palette_found.html", palette.find_by_meaning(text))
    more = urlencode({"q": text, "part": "meaning"})
    context = {
        "text": text,
        "search_query": urlencode({"q": text}),
        "more_url": f"{request.path}?{more}",
    }
    return render(request, "_palette_found.html", palette.find(text) | context)


@require_GET
def connect(request: HttpRequest) -> HttpResponse:
    """Instructions for one MCP endpoint and one client, selected by the query string."""
    known = endpoints(request)
    chosen = request.GET.get("endpoint"), request.GET.get("client")
    endpoint = next((one for one in known if one.id == chosen[0]), known[0])
    client = next((one for one in CLIENTS if one.id == chosen[1]), CLIENTS[0])
    launch = this_installation(config().data_dir) if is_on_this_machine(request) else None
    context = {
        "endpoints": known,
        "endpoint": endpoint,
        "clients": CLIENTS,
        "client": client,
        "steps": client.steps(endpoint),
        "link": install_link(client, endpoint, launch),
        "repositories": _repositories(),
        "agents": _agents(),
    }
    return render(request, "site/connect.html", context)


def _repositories() -> int | None:
    """Return the number of searchable repositories; None if the database is unavailable."""
    try:
        return len(queries.published_roots())
    except DatabaseError:
        return None


def _agents() -> int | None:
    """Return the number of agents that can run; None if their folder cannot be read."""
    try:
        return sum(not agent.problem for agent in all_agents())
    except Unavailable:
        return None


@require_GET
async def question_state(request: HttpRequest) -> HttpResponse:
    """Fragment: whether `/mcp/chat` has a model, and if not, why."""
    away, provider = None, ""
    try:
        await gate({})
        provider = registry.providers()[await default_provider()].label
    except Unavailable as error:
        away = error
    context = {"away": away, "provider": provider, "checked": True}
    return render(request, "site/_question_state.html", context)


@require_GET
def api_docs(request: HttpRequest) -> HttpResponse:
    """The API's description as a page, in which requests can be tried."""
    is_here = django_apps.is_installed("drf_spectacular_sidecar")
    context = {"install": "" if is_here else install_extra("pages")}
    return render(request, "site/api_docs.html", context)
