"""Fault row 20: a secret that passes through the product stays in none of its files and logs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from apps.embedding.static import MODEL_ID
from tests.browser.product import Product, running
from tests.stand_ins.openai_scripts import Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import SAMPLE, write_files
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

PATIENCE = 60
# Each where it may be met; none of them twice, so that a failure says which got through.
KEY, TOKEN, COOKIE, QUERY = "canary-key-1", "canary-token-2", "canary-cookie-3", "canary-query-4"
DOTENV, PEM, BODY, NAME = "canary-dotenv-5", "canary-pem-6", "canary-body-7", "canary-name-8"
QUESTION = "canary-question-9"
SECRET_FILES = {
    ".env": f"PASSWORD={DOTENV}\n",
    "tls/server.pem": f"{PEM}\n",
    "notes.txt": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM}\n",
    f".env.{NAME}": "A=1\n",
}


@dataclass(frozen=True)
class Caller:
    url: str

    def frame(self, path: str, message: Any) -> None:
        """Through a websocket, until the server has answered or closed it."""
        address = self.url.replace("http", "ws") + path
        try:
            with connect(address, additional_headers=self.headers()) as socket:
                socket.send(json.dumps(message))
                socket.recv(timeout=PATIENCE)
        except (ConnectionClosed, InvalidStatus):
            return

    def tool(self, name: str, arguments: Any, path: str = "/mcp") -> None:
        """An MCP call, whatever comes of it."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        self.post(path, {**call, "params": {"name": name, "arguments": arguments}})

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, headers=self.headers(), timeout=PATIENCE)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        sent = {"content": body} if isinstance(body, str) else {"json": body}
        return httpx.post(
            self.url + path, headers=self.headers() | headers, timeout=PATIENCE, **sent
        )

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}", "Cookie": f"sessionid={COOKIE}"}


ENTRY = {"level": "error", "timestamp": "2026-01-02T03:04:05Z", "source": "client"}
SUBSCRIBE = {"type": "subscribe_conversation"}
NESTED: Any = {"a": [{"password": "canary-logged-key-4"}]}


def log(**fields: Any) -> Callable[[Caller], object]:
    return lambda caller: caller.post("/logs", ENTRY | {"message": "it broke"} | fields)


# Door → what goes in there. Each canary names its door, so that a failure says which leaks.
DOORS: dict[str, Callable[[Caller], object]] = {
    "canary-header-1": lambda c: c.post("/ingest/start", {}, **{"X-Api-Key": "canary-header-1"}),
    "canary-agent-1": lambda c: c.post("/ingest/start", {}, **{"User-Agent": "canary-agent-1"}),
    "canary-referer-1": lambda c: c.post("/chat", {}, Referer=f"{c.url}/?t=canary-referer-1"),
    "canary-fragment-1": lambda c: c.get("/ui/logs/list?text=canary-fragment-1"),
    "canary-stream-1": lambda c: c.get("/logs?limit=canary-stream-1"),
    "canary-search-1": lambda c: c.get("/search?q=canary-search-1"),
    "canary-login-1": lambda c: c.post("/login", "username=a&password=canary-login-1"),
    "canary-query-2": lambda c: c.post("/tools/vector-search", {"query": "canary-query-2"}),
    "canary-repo-2": lambda c: c.post(
        "/tools/vector-search", {"query": "x", "repository": "canary-repo-2"}
    ),
    "canary-symbol-2": lambda c: c.post("/tools/symbol-definitions", {"name": "canary-symbol-2"}),
    "canary-flag-2": lambda c: c.post("/chat", {"provider": "openai", "apiKey": "canary-flag-2"}),
    "canary-socket-3": lambda c: c.frame("/ws?token=canary-socket-3", SUBSCRIBE),
    "canary-frame-3": lambda c: c.frame("/ws", {"type": "canary-frame-3"}),
    "canary-id-3": lambda c: c.frame("/ws", {**SUBSCRIBE, "conversationId": "canary-id-3"}),
    "canary-path-3": lambda c: c.frame("/nowhere?k=canary-path-3", {}),
    "canary-mcp-3": lambda c: c.tool("VectorSearch", {"query": "canary-mcp-3"}),
    "canary-mcp-4": lambda c: c.tool("VectorSearch", {"limit": "canary-mcp-4"}),
    "canary-mcp-5": lambda c: c.tool("canary-mcp-5", {}),
    "canary-asked-3": lambda c: c.tool(
        "codebase_question", {"question": "canary-asked-3", "provider": "hal"}, "/mcp/chat"
    ),
    "canary-logged-key-4": log(context=NESTED),
    "canary-logged-bearer-4": log(message="sent Bearer canary-logged-bearer-4"),
    "canary-logged-url-4": log(url="http://u:canary-logged-url-4@h/"),
    "canary-logged-query-4": log(url="http://h/?access_token=canary-logged-query-4"),
    "canary-logged-json-4": log(message='{"secret": "canary-logged-json-4"}'),
    "sk-canary-logged-4": log(tags=["sk-canary-logged-4"]),
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A server through which every canary has gone, by ways that end well and ways that do not."""
    with OpenAIStandIn() as model:
        model.scripts["whole"] = Script([[*say("an answer"), *end()]])
        config = {
            "CODEINFO_OPENAI_BASE_URL": model.url,
            "CODEINFO_OPENAI_API_KEY": KEY,
            "CODEINFO_API_TOKEN": TOKEN,
            "LOG_LEVEL": "debug",
            "CODEINFO_CHROMA": "follow",
        }
        with running(tmp_path_factory.mktemp("secrets"), **config) as product:
            caller = Caller(product.url)
            use(caller, product.repos)
            for knock in DOORS.values():
                knock(caller)
            wait_until(lambda: has_followed(caller), 120)
            yield product


def has_followed(caller: Caller) -> bool:
    """Whether Chroma has all vectors; an earlier answer of `/health` tells of none."""
    part = caller.get("/health").json()["parts"]["chroma"]
    return part["word"] == "Complete" and not part["detail"].endswith(", 0 vectors")


def use(caller: Caller, repos: Path) -> None:
    repo = write_files(repos / "lighthouse", {**SAMPLE, **SECRET_FILES})
    start = {"path": str(repo), "name": "lighthouse", "model": MODEL_ID}
    run = caller.post("/ingest/start", start).json()["runId"]
    while (state := caller.get(f"/ingest/status/{run}").json()["state"]) != "completed":
        assert state in ("queued", "scanning", "embedding"), state
    found = caller.post("/tools/vector-search", {"query": f"{DOTENV} {PEM} {NAME}"})
    results = found.json()["results"]
    assert results and "canary" not in json.dumps(results)
    chat_body = {
        "provider": "openai",
        "model": "whole",
        "conversationId": "c1",
        "message": QUESTION,
    }
    stream = {"Accept": "text/event-stream"}
    assert "an answer" in caller.post("/chat", chat_body, **stream).text
    failed = caller.post("/chat", {**chat_body, "model": "gone"}, **stream).text
    assert '"error"' in failed and KEY not in failed
    assert caller.get(f"/conversations?token={QUERY}").status_code == 400
    assert caller.post("/ingest/start", f'{{"api_key": "{BODY}"').status_code in (400, 415)
    broken = {"path": str(repo), "name": BODY, "model": BODY}
    assert caller.post("/ingest/start", broken).status_code == 409
    wrong = httpx.get(
        f"{caller.url}/info", headers={"Authorization": f"Bearer {QUERY}"}, timeout=PATIENCE
    )
    assert wrong.status_code == 401


def written(folder: Path) -> dict[str, bytes]:
    """Everything below the data folder: database, vectors, logs."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.fault("Forged log lines, and secrets")
@pytest.mark.parametrize("canary", [KEY, TOKEN, COOKIE, QUERY, DOTENV, PEM, BODY])
def test_no_secret_is_in_a_log_the_database_or_the_vectors(product: Product, canary: str) -> None:
    files = written(product.data)
    assert "codeinfo.sqlite3" in files
    assert any(name.startswith("logs/") for name in files)
    assert any(name.startswith("chroma/") for name in files)
    assert [name for name, content in files.items() if canary.encode() in content] == []
    assert canary not in product.log()


@pytest.mark.fault("Forged log lines, and secrets")
@pytest.mark.parametrize("canary", [NAME, QUESTION])
def test_names_and_questions_are_kept_but_never_logged(product: Product, canary: str) -> None:
    files = written(product.data)
    holds = {
        name.partition("/")[0] for name, content in files.items() if canary.encode() in content
    }
    assert holds and holds <= {"codeinfo.sqlite3", "codeinfo.sqlite3-wal"}
    assert canary not in product.log()


@pytest.mark.fault("Forged log lines, and secrets")
@pytest.mark.parametrize("canary", [*DOORS, KEY, TOKEN, COOKIE, QUERY, DOTENV, PEM, BODY])
def test_no_door_leads_into_the_log(product: Product, canary: str) -> None:
    """Neither into its file nor into what the API and the page show of it."""
    caller = Caller(product.url)
    found = caller.get(f"/logs?text={canary}").json()
    assert found["items"] == []
    assert found["lastSequence"] > len(DOORS)
    logs = {n: c for n, c in written(product.data).items() if n.startswith("logs/")}
    assert logs and not any(canary.encode() in content for content in logs.values())
    assert canary not in product.log()


def test_redacted_text_stays_without_its_secret(product: Product) -> None:
    found = Caller(product.url).get("/logs?source=client").json()["items"]
    assert sum("[redacted]" in json.dumps(entry) for entry in found) == 6
