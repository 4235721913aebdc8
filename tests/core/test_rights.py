"""Who may do what where a login is required: every route of the product, asked by everyone.

A route that is missing from ROUTES fails `test_no_route_is_forgotten`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from apps.conversations.models import Conversation, Share, Turn
from apps.core.security.authentication import server_token
from apps.core.security.menu import PAGES, Page
from tests.support.calls import REQUESTS

pytestmark = [pytest.mark.django_db, pytest.mark.door]

NO_RUN = "00000000-0000-4000-8000-000000000000"
HERS = "of-ada"
HER_TURN = "00000000-0000-4000-8000-000000000001"
HER_TOKEN = "0" * 32
HER_LINK = sha256(HER_TOKEN.encode()).hexdigest()

# What each level answers to anonymous, the owner, another user and staff.
OPEN, USER, OWNER, STAFF = "open", "user", "owner", "staff"
# Only for the token of server.json, which is no user's.
COMMAND = "command"
# Only for staff on this machine.
LOCAL = "local"
# Only for a sender with the secret of the repository, whoever is logged in.
SIGNED = "signed"
REFUSED = (COMMAND, LOCAL)
TOKEN = f"Bearer {server_token()}"


@dataclass(frozen=True)
class Route:
    """One method of a route, with an address to try. `form` and `body` are what is posted."""

    pattern: str
    method: str
    level: str
    path: str = ""
    form: dict[str, str] | None = None
    body: dict[str, Any] | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.pattern}"

    @property
    def address(self) -> str:
        return "/" + (self.path or self.pattern)


def get(pattern: str, level: str, path: str = "") -> Route:
    return Route(pattern, "GET", level, path)


def form(pattern: str, level: str, path: str = "", /, **fields: str) -> Route:
    return Route(pattern, "POST", level, path, form=fields)


def post(pattern: str, level: str, path: str = "", /, **body: Any) -> Route:
    return Route(pattern, "POST", level, path, body=body)


TURN = {"role": "assistant", "content": "x", "model": "m", "provider": "builtin", "status": "ok"}
CHAT = {"provider": "builtin", "model": "search", "conversationId": HERS, "message": "x"}
C = f"?c={HERS}"

ROUTES = [
    # retrieval
    get("tools/ingested-repos", USER),
    *(post(label.partition("/")[2], USER, **body) for label, body in REQUESTS.items()),
    get("search", USER),
    get("ui/retrieval/source", USER),
    get("code", USER),
    get("code/<anything:where>", USER, "code/r/p"),
    get("ui/code/changed", USER),
    get("ui/code/commits", USER),
    get("ui/code/facts", USER),
    get("ui/code/imports", USER),
    get("ui/code/lines", USER),
    get("ui/code/tree", USER),
    get("ui/code/name", USER),
    # site
    get("", USER),
    get("ui/palette", USER, "ui/palette?q=x"),
    get("ui/site/connected", USER),
    get("ui/site/clients", USER),
    # Only from a browser on this machine, which calls it by a loopback name.
    get("ui/site/clients/<slug:client_id>", LOCAL, "ui/site/clients/cursor"),
    get("ui/site/question", USER),
    get("connect", USER),
    get("health", OPEN),
    get("version", USER),
    get("info", USER),
    get("api/schema", USER),
    get("api/docs", USER),
    get("metrics", STAFF),
    post("control/<str:verb>", COMMAND, "control/verify", roots=["/nowhere"]),
    get("login", OPEN),
    form("logout", USER),
    # logs
    get("logs", STAFF),
    post(
        "logs", USER, level="info", message="x", timestamp="2026-01-01T00:00:00Z", source="client"
    ),
    get("logs/stream", STAFF),
    get("ui/logs/list", STAFF),
    get("ui/logs/chart", STAFF),
    get("ui/logs/stream", STAFF),
    form("ui/logs/entries", USER),
    form("ui/logs/sample", STAFF),
    # LM Studio
    get("lmstudio/status", USER),
    post("lmstudio/status", STAFF, baseUrl="http://127.0.0.1:1"),
    get("lmstudio", USER),
    get("ui/lmstudio/models", USER),
    form("ui/lmstudio/check", STAFF, baseUrl="http://127.0.0.1:1"),
    form("ui/lmstudio/reset", STAFF),
    # providers
    get("providers", STAFF),
    get("ui/providers/<str:server_id>", STAFF, "ui/providers/openai"),
    form("ui/providers/<str:server_id>", STAFF, "ui/providers/openai", do="remove"),
    # ingest
    get("ingest", USER),
    post("ingest/start", STAFF, "", path="/nowhere"),
    get("ingest/status/<str:run_id>", USER, f"ingest/status/{NO_RUN}"),
    post("ingest/cancel/<str:run_id>", STAFF, f"ingest/cancel/{NO_RUN}"),
    post("ingest/reembed/<absolute:path>", STAFF, "ingest/reembed/%2Fnowhere"),
    post("ingest/remove/<absolute:path>", STAFF, "ingest/remove/%2Fnowhere"),
    get("ingest/runs", USER),
    get("ingest/roots", USER),
    get("ingest/models", USER),
    post("ingest/model", STAFF, model="x"),
    get("ingest/dirs", STAFF),
    get("ingest/bases", STAFF),
    post("ingest/bases", COMMAND, path="/nowhere"),
    post("ingest/bases/remove", COMMAND, path="/nowhere"),
    # It has a signature instead of a login (tests/ingest/remote/test_hooks.py).
    post("hooks/git/<uuid:key>", SIGNED, f"hooks/git/{NO_RUN}"),
    form("ui/ingest/start", STAFF, path="/nowhere"),
    form("ui/ingest/allow", LOCAL, allow="/nowhere"),
    get("ui/ingest/nearby", STAFF),
    form("ui/ingest/next", STAFF, path="/nowhere"),
    form("ui/ingest/cancel/<str:run_id>", STAFF, f"ui/ingest/cancel/{NO_RUN}"),
    form("ui/ingest/plain/<str:run_id>", STAFF, f"ui/ingest/plain/{NO_RUN}"),
    form("ui/ingest/repeat/<str:run_id>", STAFF, f"ui/ingest/repeat/{NO_RUN}"),
    form("ui/ingest/force/<str:run_id>", STAFF, f"ui/ingest/force/{NO_RUN}"),
    form("ui/ingest/ref", STAFF, root=NO_RUN, ref="main"),
    form("ui/ingest/watch/<str:root_id>", STAFF, f"ui/ingest/watch/{NO_RUN}", watch="off"),
    form("ui/ingest/again", STAFF, root=NO_RUN),
    form("ui/ingest/reembed", STAFF, root=NO_RUN),
    get("ui/ingest/remove", STAFF),
    form("ui/ingest/remove", STAFF, root=NO_RUN),
    get("ui/ingest/models", STAFF),
    get("ui/ingest/model", STAFF),
    form("ui/ingest/model", STAFF, model="x"),
    get("ui/ingest/folders", STAFF),
    get("ui/ingest/parts", USER),
    get("ui/ingest/root/<str:root_id>", USER, f"ui/ingest/root/{NO_RUN}"),
    get("ui/ingest/skipped", USER),
    get("ui/ingest/skipped.csv", USER),
    # conversations: the API
    get("chat", OWNER, f"chat{C}"),
    post("chat", OWNER, **CHAT),
    get("chat/providers", USER),
    get("chat/models", USER),
    get("conversations", USER),
    post("conversations", USER, provider="builtin", model="search"),
    post(
        "conversations/bulk/<str:verb>", OWNER, "conversations/bulk/restore", conversationIds=[HERS]
    ),
    post("conversations/<str:conversation_id>/archive", OWNER, f"conversations/{HERS}/archive"),
    post("conversations/<str:conversation_id>/restore", OWNER, f"conversations/{HERS}/restore"),
    get("conversations/<str:conversation_id>/turns", OWNER, f"conversations/{HERS}/turns"),
    post("conversations/<str:conversation_id>/turns", OWNER, f"conversations/{HERS}/turns", **TURN),
    post(
        "conversations/<str:conversation_id>/turns/<str:turn_id>/rating",
        OWNER,
        f"conversations/{HERS}/turns/{HER_TURN}/rating",
        rating=1,
    ),
    post(
        "conversations/<str:conversation_id>/tags", OWNER, f"conversations/{HERS}/tags", tags=["x"]
    ),
    get("conversations/<str:conversation_id>/events", OWNER, f"conversations/{HERS}/events"),
    post("conversations/<str:conversation_id>/cancel", USER, f"conversations/{HERS}/cancel"),
    # conversations: the page
    form("ui/chat/ask", USER, q=""),
    get("ui/chat/questions", USER),
    form("ui/chat/send", OWNER, c=HERS, message="x", provider="builtin", model="search"),
    form("ui/chat/branch", OWNER, c=HERS, turn=HER_TURN),
    form("ui/chat/stop", USER, c=HERS),
    get("ui/chat/picker", USER, f"ui/chat/picker{C}"),
    get("ui/chat/scope", USER, "ui/chat/scope?at=a"),
    get("ui/chat/sidebar", USER, f"ui/chat/sidebar{C}"),
    get("ui/chat/actions", OWNER, f"ui/chat/actions{C}"),
    form("ui/chat/archive", OWNER, c=HERS),
    form("ui/chat/restore", OWNER, c=HERS),
    form("ui/chat/pin", OWNER, c=HERS, pinned="1"),
    form("ui/chat/rename", OWNER, c=HERS, title="New title"),
    form("ui/chat/rate", OWNER, c=HERS, turn=HER_TURN, rating="1"),
    get("ui/chat/tags", OWNER, f"ui/chat/tags{C}"),
    form("ui/chat/tag", OWNER, c=HERS, tag="x"),
    form("ui/chat/bulk/tag", OWNER, id=HERS, tag="x"),
    get("ui/chat/presets", USER),
    get("ui/chat/presets/edit", USER),
    form("ui/chat/presets/save", USER, name="x", text="x"),
    form("ui/chat/presets/delete", USER, id=NO_RUN),
    form("ui/chat/bulk/<str:verb>", OWNER, "ui/chat/bulk/archive", id=HERS),
    form("ui/chat/delete", OWNER, c=HERS),
    form("ui/chat/diagram", USER, source="nothing"),
    get("ui/chat/standing", OWNER, f"ui/chat/standing{C}"),
    get("ui/chat/export", OWNER, f"ui/chat/export{C}"),
    get("ui/chat/shares", OWNER, f"ui/chat/shares{C}"),
    form("ui/chat/share", OWNER, c=HERS),
    form("ui/chat/revoke", OWNER, c=HERS, link=HER_LINK),
    # Who has the token (tests/conversations/test_sharing.py).
    get("shared/<str:token>", USER, f"shared/{HER_TOKEN}"),
    get("ui/chat/codex", STAFF),
    form("ui/chat/codex/login", STAFF),
    form("ui/chat/codex/cancel", STAFF),
    # agents
    get("agents", USER),
    get("agents/<str:agent>/commands", USER, "agents/code_tour/commands"),
    post("agents/<str:agent>/commands/run", USER, "agents/none/commands/run", commandName="x"),
    post("agents/<str:agent>/run", USER, "agents/none/run", instruction="x"),
    form("ui/agents/send", USER, a="none", c="new", message="x"),
    get("ui/agents/picker", USER, "ui/agents/picker?a=code_tour"),
    form("ui/agents/execute", USER, a="none", c="new", command="x"),
    # MCP
    post("mcp", USER),
    post("mcp/chat", USER),
    post("mcp/agents", USER),
]


def patterns(resolver: URLResolver, above: str = "") -> Iterator[str]:
    for each in resolver.url_patterns:
        route = above + str(each.pattern)
        if isinstance(each, URLPattern):
            yield route
        elif route != "admin/":
            yield from patterns(each, route)


@pytest.mark.fault("A user without the right")
def test_no_route_is_forgotten() -> None:
    # Django's admin asks for a login of staff itself (tests/site/test_admin.py).
    assert {route.pattern for route in ROUTES} == set(patterns(get_resolver()))


@pytest.fixture
def people(configure: Callable[..., None]) -> dict[str, Client]:
    """Everyone by name. Ada has a conversation."""
    configure(require_login=True)
    known = {
        "ada": User.objects.create_user("ada"),
        "bob": User.objects.create_user("bob"),
        "staff": User.objects.create_user("staff", is_staff=True),
    }
    clients = {"anonymous": Client(), **{name: Client() for name in known}}
    for name, user in known.items():
        clients[name].force_login(user)
    Conversation.objects.create(
        id=HERS, provider="builtin", model="search", title="Hers", owner=known["ada"]
    )
    return clients


def ask(client: Client, route: Route) -> Any:
    headers = {"accept": "application/json"} if not route.path.startswith("chat") else {}
    if route.pattern == "ui/chat/delete":
        Conversation.objects.filter(pk=HERS).update(archived_at="2026-01-01T00:00:00Z")
    if route.pattern == "ui/chat/revoke":
        at = {"expires_at": "2999-01-01T00:00:00Z"}
        Share.objects.get_or_create(pk=HER_LINK, conversation_id=HERS, defaults=at)
    if HER_TURN in route.path or (route.form or {}).get("turn"):
        Turn.objects.get_or_create(pk=HER_TURN, conversation_id=HERS, role="assistant")
    if route.method == "GET":
        return client.get(route.address, headers=headers)
    if route.form is not None:
        return client.post(route.address, route.form)
    return client.post(route.address, route.body, content_type="application/json")


def is_refused_to_strangers(answer: Any) -> bool:
    """A page leads to the login; a fragment and the API say 401."""
    if answer.status_code == 302:
        return str(answer["Location"]).startswith("/login")
    return bool(answer.status_code == 401)


def is_refused(answer: Any) -> bool:
    """Staff's routes say 403; what belongs to somebody else is not there, or cannot be had."""
    return answer.status_code in (401, 403, 404) or b"BATCH_CONFLICT" in answer.content


# Answers are written in other threads, which do not see what a transaction has not committed.
ELSEWHERE = ("chat", "ui/chat/send", "conversations/<str:conversation_id>/events")
COMMITTED = pytest.mark.django_db(transaction=True)
each_route = pytest.mark.parametrize(
    "route",
    [
        pytest.param(route, id=str(route), marks=[COMMITTED] if route.pattern in ELSEWHERE else [])
        for route in ROUTES
    ],
)


@pytest.mark.fault("A user without the right")
@each_route
@pytest.mark.parametrize("name", ["anonymous", "bob", "ada", "staff"])
def test_every_route_answers_those_alone_whom_it_is_for(
    people: dict[str, Client], name: str, route: Route
) -> None:
    answer = ask(people[name], route)
    outcome = f"{answer.status_code} {answer.get('Location', '')}"
    assert answer.status_code != 500
    if name == "anonymous":
        assert is_refused_to_strangers(answer) is (route.level != OPEN), outcome
    elif name == "bob":
        if route.level == OWNER:
            assert is_refused(answer), outcome
            hers = Conversation.objects.get(pk=HERS)
            assert (hers.title, hers.tags) == ("Hers", "")
            assert not Turn.objects.exclude(rating=None).exists()
            assert not Turn.objects.filter(conversation=HERS).exclude(pk=HER_TURN).exists()
        else:
            assert (answer.status_code == 403) is (route.level in (STAFF, *REFUSED)), outcome
    elif name == "ada":
        assert (answer.status_code == 403) is (route.level in (STAFF, *REFUSED)), outcome
        assert not (route.level == OWNER and is_refused(answer)), outcome
    else:
        refused = (*REFUSED, SIGNED)
        assert (answer.status_code in (401, 403)) is (route.level in refused), outcome
        assert not (route.level == OWNER and is_refused(answer)), outcome
    if hasattr(answer, "close"):
        answer.close()


@each_route
def test_without_a_required_login_all_requests_are_served(route: Route) -> None:
    Conversation.objects.create(id=HERS, provider="builtin", model="search")
    answer = ask(Client(), route)
    assert (answer.status_code in (401, 403)) is (route.level in (*REFUSED, SIGNED))
    command = ask(Client(HTTP_AUTHORIZATION=TOKEN), route)
    assert (command.status_code in (401, 403)) is (route.level in (LOCAL, SIGNED))
    assert not (route.level == OWNER and is_refused(answer))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_the_menu_leads_everyone_to_the_pages_that_they_may_open(
    people: dict[str, Client], page: Page
) -> None:
    for name in ("ada", "staff"):
        answer = people[name].get(page.path, headers={"accept": "text/html"})
        assert answer["Content-Type"].startswith("text/html")
        menu = people[name].get("/connect").content.decode()
        links = [f'href="{page.path}"', f"Go to {page.title}<"]
        assert [link in menu for link in links] == [answer.status_code == 200] * 2
