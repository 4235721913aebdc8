"""Thousands of bodies, from nearly right to noise: never a 500, never a page, always JSON-RPC.

An example is a handful of methods, parameters, ids and headers, which are sent in every combination
and as a few bodies that are no requests: Hypothesis takes longer to think of one than the endpoint
takes to answer it. The seed is printed; HYPOTHESIS_SEED=<n> makes the same bodies again.
"""

import asyncio
import json
import logging
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.mcp.speech import EVERY, META, PREFIX, Answer, connection, whole

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

BODIES, PAGE = 4_000, 100
SEED = int(os.environ.get("HYPOTHESIS_SEED") or random.randrange(2**32))

METHODS = (
    *("initialize", "ping", "tools/list", "tools/call", "server/discover", "resources/list"),
    *("resources/templates/list", "resources/listTemplates", "prompts/list", "logging/setLevel"),
    *("resources/read", "prompts/get", "completion/complete", "tasks/get", "tasks/cancel"),
    *("notifications/initialized", "notifications/cancelled", "subscriptions/listen", "tools/CALL"),
)
TOOLS = (
    *("ListIngestedRepositories", "VectorSearch", "reingest_repository", "codebase_question"),
    *("test_simple_text", "test_error_handling", "test_tool_with_progress", "test_image_content"),
    *("json_schema_2020_12_tool", "test_missing_capability", "none", ""),
)
NAMES = (
    *("query", "repository", "limit", "question", "conversationId", "provider", "name", "phone"),
    *(
        "arguments",
        "cursor",
        "_meta",
        "uri",
        "ref",
        "argument",
        "context",
        "taskId",
        "notifications",
        "protocolVersion",
        "capabilities",
        "clientInfo",
    ),
    *("progressToken", f"{PREFIX}/protocolVersion", f"{PREFIX}/clientCapabilities"),
)
ODD: list[Any] = [
    *(10**400, -(10**30), 2**63, 1e308, float("nan"), float("-inf"), 5.0, True, None, 0, -1, 5),
    *("", " ", "\0", "\ud800", "\u202e", "5", "1e400", "nan", "true", "../../etc", "x" * 300),
    *([], {}, [[]], [None], {"_meta": {}}, {"a": {"b": []}}, *EVERY, "=?base64?x?="),
]
scalars = st.sampled_from(ODD) | st.text(max_size=8) | st.integers() | st.floats()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=4,
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=3)
metas = st.sampled_from(
    [META, META, META | {"progressToken": 1}, {"progressToken": "t"}, {}, *ODD[:12]]
)
params = st.fixed_dictionaries(
    {"name": st.sampled_from(TOOLS), "arguments": objects, "_meta": metas},
    optional={"cursor": values, "protocolVersion": st.sampled_from(EVERY) | values},
)
noise = st.one_of(
    values.map(json.dumps).map(str.encode),
    st.binary(max_size=40),
    st.sampled_from([b"", b"{", b"[" * 3000, b'{"a":' * 3000, b"1" * 5000, b'"\xff"', b"\x00"]),
)
headers = st.fixed_dictionaries(
    {},
    optional={
        "mcp-protocol-version": st.sampled_from([*EVERY, "9", "é"]),
        "accept": st.sampled_from(["*/*", "application/json", "text/html", "text/event-stream"]),
    },
)


def some(number: int, strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, min_size=number, max_size=number)


@dataclass(frozen=True)
class Sent:
    body: bytes
    headers: dict[str, str]
    path: str = "/mcp"


@st.composite
def pages(draw: st.DrawFn) -> list[Sent]:
    """PAGE bodies: each method with each set of parameters, and some noise."""
    methods = ["tools/call", *draw(some(8, st.sampled_from(METHODS)))]
    ids = draw(st.lists(scalars, min_size=1, max_size=3)) + [1] * 8
    chosen = draw(some(3, headers))
    page = [Sent(body, chosen[0]) for body in draw(some(10, noise))]
    for number, (method, chosen_params) in enumerate(product(methods, draw(some(10, params)))):
        id = ids[number % len(ids)]
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": chosen_params}
        path = "/mcp" if number % 5 else "/mcp/chat"
        # Most callers repeat in headers what the body says; without that few get far.
        honest = {} if number % 4 == 3 else _repeated(message)
        sent = chosen[number % len(chosen)] | honest
        page.append(Sent(json.dumps(message).encode(), sent, path))
    return page


def _repeated(message: dict[str, Any]) -> dict[str, str]:
    params = message["params"]
    meta = params["_meta"]
    version = meta.get(f"{PREFIX}/protocolVersion") if isinstance(meta, dict) else None
    if version is None:
        return {}
    return {
        "mcp-protocol-version": version,
        "mcp-method": message["method"],
        "mcp-name": params["name"],
    }


@pytest.fixture
def loop(transactional_db: None, suite_tools: None) -> Iterator[asyncio.Runner]:
    # Two entries for each body would be a third of the work; test_log.py looks at them.
    logging.disable(logging.INFO)
    with asyncio.Runner() as runner:
        yield runner
    logging.disable(logging.NOTSET)


async def answers(page: list[Sent]) -> list[Answer]:
    return await asyncio.gather(*map(answer, page))


async def answer(sent: Sent) -> Answer:
    async with connection(sent.body, sent.path, **sent.headers) as door:
        return await whole(door)


def check(sent: Sent, found: Answer) -> None:
    """Nothing unforeseen happened, and any strict reader can read the answer."""
    assert found.status in (200, 202, 400, 404, 503), (sent, found)
    if found.status == 202:
        assert found.body == b""
        return
    if found.kind == "text/event-stream":
        message = found.events[-1]
    else:
        assert found.kind == "application/json", (sent, found)
        message = found.json
    assert message["jsonrpc"] == "2.0" and ("result" in message) != ("error" in message)
    assert "INTERNAL_ERROR" not in json.dumps(message), (sent, found)


def test_every_body_is_answered_with_json_rpc(loop: asyncio.Runner) -> None:
    statuses: dict[int, int] = {}

    @seed(SEED)
    @settings(
        max_examples=BODIES // PAGE,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(pages())
    def run(page: list[Sent]) -> None:
        for sent, found in zip(page, loop.run(answers(page)), strict=True):
            check(sent, found)
            statuses[found.status] = statuses.get(found.status, 0) + 1

    print(f"HYPOTHESIS_SEED={SEED}")
    run()
    print(statuses)
    assert sum(statuses.values()) >= BODIES
    # Far enough in: whole requests were answered, too.
    assert statuses[200] > BODIES / 20
