"""A refusal is the contract's error, and leaves everything as it was. Each kind of bad input is
tried in full at its own door (docs/faults.md); here one of each meets a product in use."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.conversations.models import Conversation, Turn
from apps.embedding.static import MODEL_ID
from apps.index.models import IndexLock, IngestRun, Root, SourceFile

pytestmark = pytest.mark.django_db(transaction=True)

MODEL = MODEL_ID
NO_RUN = "00000000-0000-4000-8000-000000000000"
TURN = {"role": "user", "content": "x", "model": "m", "provider": "builtin", "status": "ok"}
CHAT = {"provider": "builtin", "model": "search", "message": "Why?"}


@pytest.fixture
def base(folder: Path) -> Path:
    """A repository that is being ingested anew, a free folder, a file; conversations, one old."""
    for name in ("repo", "free"):
        (folder / name).mkdir()
    (folder / "file").write_text("x")
    path = str(folder / "repo")
    Root.objects.create(name="repo", path=path, model=MODEL, generation=1)
    IndexLock.objects.create(model=MODEL, dimension=256)
    IngestRun.objects.create(operation="reembed", path=path, name="repo", model=MODEL, slot="x")
    for name in ("c1", "old"):
        row = Conversation.objects.create(id=name, provider="builtin", model="search")
        Turn.objects.create(conversation=row, role="user", parts=[{"type": "text", "text": name}])
    assert Client().generic("POST", "/conversations/old/archive").status_code == 200
    return folder


def start(**changes: Any) -> dict[str, Any]:
    return {"path": "{base}/free", "name": "free", "model": MODEL, **changes}


REFUSALS: list[tuple[str, Any, int, str]] = [
    ("/ingest/start", start(path="{base}/none"), 404, "NOT_FOUND"),
    ("/ingest/start", start(path="{base}/file"), 400, "NOT_DIRECTORY"),
    ("/ingest/start", start(path="/etc"), 400, "OUTSIDE_BASE"),
    ("/ingest/start", start(name="repo"), 409, "NAME_TAKEN"),
    ("/ingest/start", start(model="openai:other"), 409, "MODEL_LOCKED"),
    ("/ingest/start", start(), 429, "BUSY"),
    ("/ingest/start", "{", 400, "VALIDATION"),
    (f"/ingest/cancel/{NO_RUN}", None, 404, "NOT_FOUND"),
    ("/ingest/reembed/%2Fnone", None, 404, "NOT_FOUND"),
    ("/ingest/remove/%2Fnone", None, 404, "NOT_FOUND"),
    ("/tools/vector-search", {"query": "x", "repository": "none"}, 404, "REPO_NOT_FOUND"),
    ("/tools/vector-search", {"query": "x", "limit": True}, 400, "VALIDATION_FAILED"),
    ("/tools/vector-search", {"query": "x", "limit": "5"}, 400, "VALIDATION_FAILED"),
    ("/conversations", {"provider": "builtin"}, 400, "validation_error"),
    ("/conversations/none/turns", TURN, 404, "not_found"),
    ("/conversations/none/archive", None, 404, "not_found"),
    ("/conversations/none/restore", None, 404, "not_found"),
    ("/conversations/none/cancel", None, 404, "INFLIGHT_NOT_FOUND"),
    ("/conversations/old/turns", TURN, 410, "archived"),
    ("/conversations/bulk/delete", {"conversationIds": ["c1", "old"]}, 409, "BATCH_CONFLICT"),
    ("/chat", {**CHAT, "conversationId": "old"}, 410, "CONVERSATION_ARCHIVED"),
    ("/chat", {**CHAT, "conversationId": "c9", "provider": "hal"}, 400, "UNSUPPORTED_PROVIDER"),
    ("/chat", {**CHAT, "conversationId": "c1", "parentTurnId": "x"}, 400, "INVALID_PARENT"),
    ("/chat", "[]", 400, "VALIDATION_FAILED"),
]


def everything() -> dict[str, list[dict[str, Any]]]:
    tables = (Root, SourceFile, IngestRun, IndexLock, Conversation, Turn)
    return {table.__name__: list(table.objects.order_by("pk").values()) for table in tables}


def send(path: str, body: Any, base: Path) -> tuple[int, str]:
    raw = body if isinstance(body, str | None) else json.dumps(body).replace("{base}", str(base))
    sent = {} if raw is None else {"data": raw, "content_type": "application/json"}
    answer = Client().generic("POST", path, **sent)
    wire = answer.json()
    return answer.status_code, wire["code"] if wire.get("status") == "error" else wire["error"]


@pytest.mark.fault("An ingest is refused")
@pytest.mark.parametrize(("path", "body", "status", "code"), REFUSALS)
def test_a_refusal_changes_nothing(
    base: Path, path: str, body: Any, status: int, code: str
) -> None:
    before = everything()
    assert send(path, body, base) == (status, code)
    assert everything() == before


@pytest.mark.fault("An ingest is refused")
def test_a_folder_that_cannot_be_read_is_refused_before_it_is_queued(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, who reads everything.
    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    before = everything()
    assert send("/ingest/start", start(), base) == (400, "NOT_READABLE")
    assert everything() == before
