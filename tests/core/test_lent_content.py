"""What a request's content widens, and for whom: fields of bodies, flags, and settings of agents.

tests/core/test_rights.py asks the same of routes. The fields come from the API's description and
from the schemas of the MCP tools: a new one fails `test_every_field_has_a_decision` until somebody
decides what it lends.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.agent_runs.definitions.config import KEYS
from apps.agents.providers.codex.flags import FLAGS
from apps.core.security.authentication import server_token
from apps.core.types import JSON
from apps.mcp.agents import AGENTS
from apps.mcp.chat import CHAT
from apps.mcp.search import SEARCH
from apps.site.openapi.document import document
from tests.support.agents import make_agent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

# Names of what is asked, and how much is answered. They widen nothing.
DATA = frozenset(
    re.findall(
        r"\w+",
        """
        agentName args arguments base cancelOnDisconnect changes code command
        commandName commit content context conversationId conversationIds correlationId
        cursor depth direction end_line fixed format from id ignore_case inflightId
        instruction jsonrpc kind language level limit lines max_tokens message method
        mode model modelReasoningEffort multiline name of offset params parentTurnId
        patch path pattern provider query question rating ref repository requestId role
        route scope skipped snippet_lines source start_line status symbol tags tests text
        timestamp timing title to toolCalls url usage userAgent within within_path word
        """,
    )
)
# Fields of routes and tools that are for staff as a whole.
OF_STAFF = frozenset({"baseUrl", "description", "dryRun", "force", "plainFolder"})
# Fields that ask for more than a search. CASES asks for each as everybody.
WIDENING = frozenset(
    {
        *("sandboxMode", "approvalPolicy", "networkAccessEnabled", "webSearchEnabled"),
        *("threadId", "flags", "working_folder"),
    }
)
# Settings of an agent that give it rights; the others limit or describe it.
AGENT_RIGHTS = frozenset({"write", "run", "network", "readable", "project_docs", "users"})
AGENT_LIMITS = frozenset({"provider", "model", "tools", "repositories"})


def fields_of_bodies() -> Iterator[str]:
    schemas = document()["components"]["schemas"]
    for operations in document()["paths"].values():
        for operation in operations.values():
            if not isinstance(operation, dict):
                continue
            for content in operation.get("requestBody", {}).get("content", {}).values():
                yield from _properties(content["schema"], schemas)


def fields_of_tools() -> Iterator[str]:
    for endpoint in (SEARCH, CHAT, AGENTS):
        for tool in endpoint.registry():
            yield from _properties(tool.input_schema, {})


def _properties(schema: JSON, schemas: JSON) -> Iterator[str]:
    if "$ref" in schema:
        yield from _properties(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    yield from schema.get("properties", {})
    for combination in ("allOf", "oneOf", "anyOf"):
        for inner in schema.get(combination, ()):
            yield from _properties(inner, schemas)


def test_every_field_has_a_decision() -> None:
    fields = {*fields_of_bodies(), *fields_of_tools(), *(flag.name for flag in FLAGS)}
    assert fields <= DATA | OF_STAFF | WIDENING, fields - (DATA | OF_STAFF | WIDENING)
    assert fields >= WIDENING, "these are gone"


def test_every_setting_of_an_agent_has_a_decision() -> None:
    assert set(KEYS) == AGENT_RIGHTS | AGENT_LIMITS


@dataclass(frozen=True)
class Case:
    """A request that asks for more than a search, and who is refused: FORBIDDEN, or `refusal`."""

    name: str
    path: str
    body: JSON
    for_users: bool
    refusal: str = "FORBIDDEN"

    def __str__(self) -> str:
        return self.name


CHAT_BODY: JSON = {"provider": "codex", "model": "m", "conversationId": "c", "message": "x"}
CONVERSATION: JSON = {"provider": "codex", "model": "m"}
RUN: JSON = {"instruction": "x"}


def chat(for_users: bool, **fields: Any) -> Case:
    (name,) = fields
    return Case(f"chat {name}={fields[name]}", "/chat", CHAT_BODY | fields, for_users)


def conversation(for_users: bool, **flags: Any) -> Case:
    (name,) = flags
    return Case(
        f"stored {name}={flags[name]}", "/conversations", CONVERSATION | {"flags": flags}, for_users
    )


def run(agent: str, for_users: bool, refusal: str = "FORBIDDEN", **fields: str) -> Case:
    return Case(f"{agent} {fields}", f"/agents/{agent}/run", RUN | fields, for_users, refusal)


OUTSIDE = "WORKING_FOLDER_NOT_FOUND"
CASES = [
    # Everybody's: they have no effect (tests/agents/codex/test_lent_rights.py).
    chat(True, sandboxMode="danger-full-access"),
    chat(True, approvalPolicy="never"),
    chat(False, networkAccessEnabled=True),
    chat(False, webSearchEnabled=True),
    conversation(True, sandboxMode="danger-full-access"),
    conversation(False, networkAccessEnabled=True),
    conversation(False, webSearchEnabled=True),
    conversation(False, threadId="019a0000-0000-7000-8000-000000000000"),
    run("searches", True),
    run("writes", False),
    run("runs", False),
    run("networks", False),
    run("connects", False),
    run("unlimited", False),
    run("lent", True),
    run("lent", False, OUTSIDE, working_folder="{base}/free"),
    run("lent", True, working_folder="{base}/ingested"),
    run("lent", True, working_folder="{base}/ingested/inner"),
    run("searches", True, working_folder="{base}/free"),
]
AGENT_FILES = {
    "searches": 'model_reasoning_effort = "low"\n',
    "writes": "[codeinfo]\nwrite = true\n",
    "runs": "[codeinfo]\nrun = true\n",
    "networks": "[codeinfo]\nnetwork = true\n",
    "connects": '[mcp_servers.other]\nurl = "http://127.0.0.1:9"\n',
    "lent": "[codeinfo]\nwrite = true\nrun = true\nusers = true\n",
    "unlimited": (
        'sandbox_mode = "danger-full-access"\n'
        "[codeinfo]\nwrite = true\nrun = true\nnetwork = true\nusers = true\n"
    ),
}


@pytest.fixture
def base(folder: Path, configure: Callable[..., None]) -> Path:
    """An ingest base with a free folder and an ingested repository, and agents of each kind."""
    from apps.index.models import Root  # noqa: PLC0415 - needs the database

    for name in ("free", "ingested/inner"):
        (folder / name).mkdir(parents=True)
    Root.objects.create(path=str(folder / "ingested"), name="ingested", generation=1)
    configure(require_login=True, agents_home=folder / "agents", codex_home=folder / "codex")
    for name, file in AGENT_FILES.items():
        make_agent(folder / "agents", name, file)
    return folder


@pytest.fixture
def people(base: Path) -> dict[str, Client]:
    clients = {"anonymous": Client(), "user": Client(), "staff": Client()}
    clients["user"].force_login(User.objects.create_user("user"))
    clients["staff"].force_login(User.objects.create_user("staff", is_staff=True))
    return clients | {"token": Client(HTTP_AUTHORIZATION=f"Bearer {server_token()}")}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_content_widens_only_for_those_whom_it_is_for(
    people: dict[str, Client], base: Path, case: Case
) -> None:
    folder = str(case.body.get("working_folder", "")).format(base=base)
    body = case.body | ({"working_folder": folder} if folder else {})
    for name, client in people.items():
        answer = client.post(case.path, body, content_type="application/json")
        text = answer.content.decode()
        if name == "anonymous":
            assert answer.status_code == 401, text
        elif name == "user" and not case.for_users:
            assert case.refusal in text, text
            assert (answer.status_code == 403) is (case.refusal == "FORBIDDEN")
        else:
            # Codex itself is not there.
            assert answer.status_code in (201, 503), (name, text)


@pytest.mark.parametrize("agent", AGENT_FILES)
def test_mcp_runs_an_agent_only_for_those_whom_it_is_for(
    people: dict[str, Client], agent: str
) -> None:
    arguments = {"agentName": agent, "instruction": "x"}
    for name in ("user", "staff", "token"):
        listed = agents_listed(people[name])
        answer = call(people[name], "run_agent_instruction", arguments)
        refused = name == "user" and agent not in ("searches", "lent")
        assert ("is for staff" in answer) is refused, answer
        assert (agent in listed["disabled"]) is refused


def agents_listed(client: Client) -> dict[str, list[str]]:
    rows = client.get("/agents", headers={"accept": "application/json"}).json()["agents"]
    return {"disabled": [row["name"] for row in rows if row.get("disabled")]}


def call(client: Client, tool: str, arguments: JSON) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    message |= {"params": {"name": tool, "arguments": arguments}}
    answer = client.post("/mcp/agents", message, content_type="application/json")
    return answer.content.decode()


def test_the_page_of_an_agent_for_staff_says_so_and_has_no_composer(
    people: dict[str, Client],
) -> None:
    page = {"headers": {"accept": "text/html"}}
    shown = people["user"].get("/agents?a=runs", **page).content.decode()
    assert "This agent is for staff." in shown
    assert "/ui/agents/send" not in shown
    assert "/ui/agents/send" in people["staff"].get("/agents?a=runs", **page).content.decode()
    assert "/ui/agents/send" in people["user"].get("/agents?a=lent", **page).content.decode()
