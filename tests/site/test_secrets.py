"""Fault row 20: a secret that passes through the product stays in none of its files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.ingest.embedding.static import MODEL_ID
from tests.browser.product import Product, running
from tests.stand_ins.openai_scripts import Script, end, say
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.support.ingested import SAMPLE, write_files

PATIENCE = 20
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

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, headers=self.headers(), timeout=PATIENCE)

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        sent = {"content": body} if isinstance(body, str) else {"json": body}
        return httpx.post(
            self.url + path, headers=self.headers() | headers, timeout=PATIENCE, **sent
        )

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {TOKEN}", "Cookie": f"sessionid={COOKIE}"}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A server through which every canary has gone, by ways that end well and ways that do not."""
    with OpenAIStandIn() as model:
        model.scripts["whole"] = Script([[*say("an answer"), *end()]])
        knobs = {
            "CODEINFO_OPENAI_BASE_URL": model.url,
            "CODEINFO_OPENAI_API_KEY": KEY,
            "CODEINFO_API_TOKEN": TOKEN,
            "LOG_LEVEL": "debug",
        }
        with running(tmp_path_factory.mktemp("secrets"), **knobs) as product:
            use(Caller(product.url), product.repos)
            yield product


def use(caller: Caller, repos: Path) -> None:
    repo = write_files(repos / "lighthouse", {**SAMPLE, **SECRET_FILES})
    start = {"path": str(repo), "name": "lighthouse", "model": MODEL_ID}
    run = caller.post("/ingest/start", start).json()["runId"]
    while (state := caller.get(f"/ingest/status/{run}").json()["state"]) != "completed":
        assert state in ("queued", "scanning", "embedding"), state
    found = caller.post("/tools/vector-search", {"query": f"{DOTENV} {PEM} {NAME}"})
    assert found.json()["results"] and "canary" not in found.text
    asked = {"provider": "openai", "model": "whole", "conversationId": "c1", "message": QUESTION}
    stream = {"Accept": "text/event-stream"}
    assert "an answer" in caller.post("/chat", asked, **stream).text
    failed = caller.post("/chat", {**asked, "model": "gone"}, **stream).text
    assert '"error"' in failed and KEY not in failed
    assert caller.get(f"/conversations?token={QUERY}").status_code == 400
    assert caller.post("/ingest/start", f'{{"api_key": "{BODY}"').status_code in (400, 415)
    broken = {"path": str(repo), "name": BODY, "model": BODY}
    assert caller.post("/ingest/start", broken).status_code == 409
    wrong = httpx.get(f"{caller.url}/info", headers={"Authorization": f"Bearer {QUERY}"})
    assert wrong.status_code == 401


def written(folder: Path) -> dict[str, bytes]:
    """Everything below the data folder: database, vectors, logs."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("canary", [KEY, TOKEN, COOKIE, QUERY, DOTENV, PEM, BODY])
def test_no_secret_is_in_a_log_the_database_or_the_vectors(product: Product, canary: str) -> None:
    files = written(product.data)
    assert "codeinfo.sqlite3" in files
    assert any(name.startswith("logs/") for name in files)
    assert any(name.startswith("chroma/") for name in files)
    assert [name for name, content in files.items() if canary.encode() in content] == []
    assert canary not in product.log()


@pytest.mark.parametrize("canary", [NAME, QUESTION])
def test_names_and_questions_are_kept_but_never_logged(product: Product, canary: str) -> None:
    files = written(product.data)
    holds = {
        name.partition("/")[0] for name, content in files.items() if canary.encode() in content
    }
    assert holds and holds <= {"codeinfo.sqlite3", "codeinfo.sqlite3-wal"}
    assert canary not in product.log()
