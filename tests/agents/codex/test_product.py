"""The product on a real server, the real Codex binary and our `/mcp` endpoint."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.browser.product import Product, running
from tests.stand_ins.responses_scripts import Script, call, end, say
from tests.stand_ins.responses_server import ResponsesStandIn, write_config
from tests.support.served import until_ingested

pytestmark = pytest.mark.door

SOURCE = '''"""Networking."""


def retry(times):
    """Yield the pauses between the tries of a request."""
    for n in range(times):
        yield n * 2
'''
PATIENCE = 60


@pytest.fixture(scope="module")
def api() -> Iterator[ResponsesStandIn]:
    with ResponsesStandIn() as api:
        yield api


@pytest.fixture(scope="module")
def product(api: ResponsesStandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product with one ingested repository, `acme`."""
    folder = tmp_path_factory.mktemp("codex-product")
    write_config(folder / "codex", api.url)
    config = {
        "CODEINFO_CODEX_HOME": str(folder / "codex"),
        "CODEINFO_MCP_TOKEN": "let-me-in",
        "CODEINFO_MCP_CODEX_MODEL": "tool",
        "CODEINFO_MCP_CODEX_EFFORT": "low",
        "MCP_FORCE_CODEX_AVAILABLE": "",
    }
    with running(folder, **config) as product:
        (product.repos / "acme" / "src").mkdir(parents=True)
        (product.repos / "acme" / "src" / "net.py").write_text(SOURCE)
        ingest(product, {"path": str(product.repos / "acme"), "name": "acme"})
        yield product


def ingest(product: Product, folder: dict[str, str]) -> None:
    url = f"{product.url}/ingest"
    (model, *_) = httpx.get(f"{url}/models", timeout=PATIENCE).json()["models"]
    started = httpx.post(f"{url}/start", json={**folder, "model": model["id"]}, timeout=PATIENCE)
    assert started.status_code == 202, started.text
    until_ingested(product, started.json()["runId"])


def ask(product: Product, conversation: str, model: str = "tool") -> list[dict[str, Any]]:
    body = {"provider": "codex", "model": model, "message": "Where is the retry?"}
    response = httpx.post(
        f"{product.url}/chat",
        json={**body, "conversationId": conversation},
        headers={"Accept": "text/event-stream"},
        timeout=PATIENCE,
    )
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_codex_searches_and_its_answer_cites_the_results(
    product: Product, api: ResponsesStandIn
) -> None:
    frames = ask(product, "c1")
    assert [frame["type"] for frame in frames if frame["type"] != "token"] == [
        "thread",
        "tool-request",
        "tool-result",
        "final",
        "complete",
    ]
    found = next(frame for frame in frames if frame["type"] == "tool-result")
    assert (found["name"], found["stage"]) == ("VectorSearch", "success")
    (match,) = found["result"]["results"]
    assert (match["repo"], match["relPath"]) == ("acme", "src/net.py")
    assert match["hostPath"] == str(product.repos / "acme" / "src" / "net.py")
    source = SOURCE.splitlines()[match["startLine"] - 1 : match["endLine"]]
    assert match["chunk"].splitlines() == source
    assert frames[-1]["threadId"] == frames[0]["threadId"]
    page = httpx.get(
        f"{product.url}/chat?c=c1", headers={"Accept": "text/html"}, timeout=PATIENCE
    ).text
    assert "VectorSearch" in page
    assert "1 match" in page
    assert "Citations (1)" in page
    assert "src/net.py" in page
    assert match["hostPath"] in page
    assert f"start={match['startLine']}" in page


def test_codex_finds_exact_text_reads_lines_and_gets_a_context(
    product: Product, api: ResponsesStandIn
) -> None:
    """One round for each tool, with what the tool returned in the next request."""
    repository = {"repository": "acme"}
    calls = {
        "Grep": {"pattern": "def retry", **repository},
        "ReadFile": {"path": "src/net.py", "lines": "4-7", **repository},
        "Context": {"question": "how long are the pauses of a retry?", **repository},
    }
    rounds = [[*call(name, arguments), *end()] for name, arguments in calls.items()]
    answer = "The pauses grow by two: `acme/src/net.py:6-7`."
    api.scripts["exact"] = Script([*rounds, [*say(answer), *end()]])
    frames = ask(product, "c4", "exact")
    results = [frame for frame in frames if frame["type"] == "tool-result"]
    assert [(each["name"], each["stage"]) for each in results] == [
        (name, "success") for name in calls
    ]
    grep, read, context = (each["result"] for each in results)
    assert [hit["symbol"] for hit in grep["results"]] == ["retry"]
    assert "yield n * 2" in json.dumps(read)
    assert "src/net.py" in json.dumps(context)
    returned = json.dumps(api.requests[-1].body["input"])
    assert all(text in returned for text in ("def retry", "yield n * 2"))
    assert all("hostPath" in each["result"]["results"][0] for each in results)
    assert "hostPath" not in returned and "codeinfo/full" not in returned, "no model pays for it"
    page = httpx.get(
        f"{product.url}/chat?c=c4", headers={"Accept": "text/html"}, timeout=PATIENCE
    ).text
    assert all(name in page for name in calls)
    assert "start=6" in page, "the citation leads to its lines"


def test_the_next_question_goes_to_the_same_thread(product: Product, api: ResponsesStandIn) -> None:
    (first, *_) = ask(product, "c2", "plain")
    (second, *_) = ask(product, "c2", "plain")
    assert first["threadId"] == second["threadId"]
    rows = httpx.get(f"{product.url}/conversations", timeout=PATIENCE).json()["items"]
    flags = next(row["flags"] for row in rows if row["conversationId"] == "c2")
    assert flags["threadId"] == first["threadId"]
    assert flags["approvalPolicy"] == "on-failure", "kept as it was chosen"


def test_a_tools_error_is_sent_to_the_model_and_shown(
    product: Product, api: ResponsesStandIn
) -> None:
    api.scripts["wrong"] = lost_repository()
    frames = ask(product, "c3", "wrong")
    refused = next(frame for frame in frames if frame["type"] == "tool-result")
    assert refused["stage"] == "error"
    assert refused["errorTrimmed"]["code"] == "REPO_NOT_FOUND"
    assert "REPO_NOT_FOUND" in json.dumps(api.requests[-1].body["input"])


def lost_repository() -> Script:
    search = call("VectorSearch", {"query": "retry", "repository": "nowhere"})
    return Script([[*search, *end()], [*say("It is not there."), *end()]])


def test_codebase_question_uses_codex_with_the_configured_options(
    product: Product, api: ResponsesStandIn
) -> None:
    params = {"name": "codebase_question", "arguments": {"question": "Where is the retry?"}}
    answer = httpx.post(
        f"{product.url}/mcp/chat",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
        headers={"Authorization": "Bearer let-me-in"},
        timeout=PATIENCE,
    ).json()
    payload = json.loads(answer["result"]["content"][0]["text"])
    assert payload["segments"] == [{"type": "answer", "text": "It is in `acme/src/net.py:1-7`."}]
    body = api.requests[-1].body
    assert (body["model"], body["reasoning"]["effort"]) == ("tool", "low")
    assert "web_search" not in [tool["type"] for tool in body["tools"]]
    assert "Network access is restricted" in json.dumps(body["input"])
