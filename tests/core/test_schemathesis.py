"""schemathesis asks every operation of the API's description, and reads the answers by it.

Each operation is first asked in the right way, for rows that exist; then with what schemathesis
makes of its description. The examples are the same in every run.
"""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from apps.conversations.models import Conversation, Turn, now_ms
from apps.embedding.static import MODEL_ID
from apps.site.openapi.document import document
from apps.tools.tools import TOOLS
from codeinfo.asgi import application
from tests.support.calls import REQUESTS
from tests.support.git import commit_all, init
from tests.support.index import wire_ends
from tests.support.ingested import SAMPLE, ingest_sample, write_files
from tests.support.parts import clear_index

__all__ = ["wire_ends"]
pytestmark = [
    *(pytest.mark.django_db(transaction=True), pytest.mark.door),
    pytest.mark.usefixtures("wire_ends"),
]

EXAMPLES = 15
HOST = "http://localhost"
CONVERSATION = "c1"
ANSWER = "00000000-0000-4000-8000-000000000001"
TURN = {"role": "assistant", "content": "x", "model": "m", "provider": "builtin", "status": "ok"}
ENTRY = {"level": "info", "message": "m", "timestamp": "2026-01-02T03:04:05Z", "source": "client"}
IDS = {"conversationIds": [CONVERSATION]}
# A right body of each operation that has one. Others need none.
BODIES: dict[str, Any] = {
    **REQUESTS,
    "POST /chat": {
        "provider": "builtin",
        "model": "search",
        "conversationId": CONVERSATION,
        "message": "Where is the retry?",
    },
    "POST /conversations": {"provider": "builtin", "model": "search"},
    "POST /conversations/{conversation_id}/turns": TURN,
    "POST /conversations/{conversation_id}/turns/{turn_id}/rating": {"rating": -1},
    "POST /conversations/{conversation_id}/tags": {"tags": ["Needs review"]},
    "POST /conversations/bulk/archive": IDS,
    "POST /conversations/bulk/restore": IDS,
    "POST /conversations/bulk/delete": IDS,
    "POST /agents/{agent}/run": {"instruction": "Look at the retry."},
    "POST /agents/{agent}/commands/run": {"commandName": "first_look"},
    "POST /ingest/start": {"path": "", "name": "lighthouse", "model": MODEL_ID},
    "POST /ingest/model": {"model": MODEL_ID},
    "POST /ingest/bases": {"path": "/nowhere"},
    "POST /ingest/bases/remove": {"path": "/nowhere"},
    "POST /logs": ENTRY,
    **dict.fromkeys(
        ("POST /mcp", "POST /mcp/chat", "POST /mcp/agents"),
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    ),
}
# The stream never ends (tests/logs/test_streams.py). The other queries any server that is named.
NOT_ASKED = {"GET /logs/stream", "POST /lmstudio/status"}
# No LM Studio is there, and these requests do not have the token of server.json.
RIGHT_BUT_FAILS = {"GET /lmstudio/status": 502, "GET /chat/models": 503}
RIGHT_BUT_FAILS |= {"POST /hooks/git/{key}": 401}
RIGHT_BUT_FAILS |= {"POST /ingest/bases": 403, "POST /ingest/bases/remove": 403}
# A blank filter is as good as none. So is any false value of a tool's optional argument, by the
# contract.
LENIENT = {
    "GET /logs",
    "GET /search",  # a page without `box`
    *(
        f"POST /tools/{tool.route}"
        for tool in TOOLS
        if tool.parameters["properties"].keys() - tool.parameters.get("required", ())
    ),
}
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]

described = schemathesis.openapi.from_dict(document())
OPERATIONS = {
    operation.label: operation
    for operation in (result.ok() for result in described.get_all_operations())
    if operation.label not in NOT_ASKED
}
bounded = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def parameters(folder: Path) -> dict[str, str]:
    """Rows that exist, and a value for each parameter of a path that names one."""
    clear_index()
    commit_all(write_files(init(folder), SAMPLE))
    root = ingest_sample(folder)
    Conversation.objects.create(id=CONVERSATION, provider="builtin", model="search")
    Turn.objects.create(
        conversation_id=CONVERSATION,
        role="user",
        provider="builtin",
        model="search",
        parts=[{"type": "text", "text": "Where is it?"}],
    )
    return {
        "agent": "code_tour",
        "conversation_id": CONVERSATION,
        "turn_id": ANSWER,
        "path": root.path,
        "key": str(root.id),
        "run_id": str(root.last_run_id),
    }


def prepare(label: str) -> None:
    """What one operation alone finds: an archived conversation, an answer, or one in progress."""
    if label == "POST /conversations/bulk/delete":
        Conversation.objects.filter(pk=CONVERSATION).update(archived_at=now_ms())
    if label.endswith("/rating"):
        Turn.objects.create(pk=ANSWER, conversation_id=CONVERSATION, role="assistant")
    if label == "POST /conversations/{conversation_id}/cancel":
        Turn.objects.create(
            conversation_id=CONVERSATION,
            role="assistant",
            provider="builtin",
            model="search",
            status=Turn.Status.RUNNING,
            heartbeat_at=now_ms(),
        )


def right_body(label: str, parameters: dict[str, str]) -> Any:
    body = BODIES.get(label)
    return body | {"path": parameters["path"]} if label == "POST /ingest/start" else body


async def send(case: schemathesis.Case) -> httpx.Response:
    """The answer to a case, which is sent to the ASGI application."""
    wire = requests.Request(**case.as_transport_kwargs(base_url=HOST)).prepare()
    assert wire.url is not None
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, timeout=60) as client:
        return await client.request(
            str(wire.method), wire.url, headers=dict(wire.headers), content=wire.body
        )


def check(loop: asyncio.Runner, case: schemathesis.Case) -> int:
    """Send a case. Its answer must be as described, and not a bug. Returns the status."""
    answer = loop.run(send(case))
    assert answer.status_code != 500, answer.text
    strict = [] if case.operation.label in LENIENT else [negative_data_rejection]
    case.validate_response(answer, checks=[*CHECKS, *strict])
    return answer.status_code


@pytest.mark.fault("Malformed requests")
@pytest.mark.parametrize("label", OPERATIONS)
def test_an_operation_answers_as_it_is_described(
    loop: asyncio.Runner, parameters: dict[str, str], label: str
) -> None:
    operation = OPERATIONS[label]
    named = {name: value for name, value in parameters.items() if f"{{{name}}}" in label}
    prepare(label)
    body = right_body(label, parameters)
    right = {"body": body, "media_type": "application/json"} if body else {}
    status = check(loop, operation.Case(path_parameters=named, **right))
    assert status == RIGHT_BUT_FAILS.get(label, status)
    assert label in RIGHT_BUT_FAILS or status < 300

    for mode in GenerationMode:
        if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
            continue

        @bounded
        @given(case=operation.as_strategy(mode, path_parameters=named))
        def hold(case: schemathesis.Case) -> None:
            check(loop, case)

        hold()
