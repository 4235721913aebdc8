"""The head of an answer says how many of its citations still hold."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from django.test import Client

from apps.conversations.models import Conversation, Turn
from apps.ingest.runs import queue
from apps.tools.tools import TOOLS
from tests.conversations.pages import visible
from tests.support.git import commit_all, init
from tests.support.ingested import SAMPLE, ingest, ingest_sample, write_files

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

PATH = "src/retry.py"
TEXT = (
    f"It doubles (`lighthouse/{PATH}:6-8`), as `lighthouse/{PATH}:11-12` says. Ships are stored by "
    "`lighthouse/src/store.js:1-3`."
)
BY_NAME = {tool.name: tool for tool in TOOLS}
Head = Callable[[], str]


def answered(text: str = TEXT, *paths: str, tool: str = "ReadFile") -> Turn:
    """An answer that has read some files of `lighthouse`, and cites them."""
    Conversation.objects.create(id="c1", provider="builtin", model="search")
    turn = Turn(conversation_id="c1", role="user", provider="builtin", model="search")
    turn.parts = [{"type": "text", "text": "How long does a retry wait?"}]
    turn.save()
    parts: list[dict[str, Any]] = []
    for path in paths or (PATH, "src/store.js"):
        arguments = {"repository": "lighthouse", "path": path}
        call = {"type": "tool", "callId": path, "name": tool, "parameters": arguments}
        result = BY_NAME[tool].run(arguments)
        parts.append(call | {"stage": "success", "result": result, "error": None, "seconds": 0.1})
    turn = Turn(conversation_id="c1", role="assistant", provider="builtin", model="search")
    turn.parts = [*parts, {"type": "text", "text": text}]
    turn.save()
    return turn


def head(client: Client, turn: Turn) -> str:
    response = client.get("/ui/chat/standing", {"c": "c1", "turn": str(turn.pk)})
    assert response.status_code == 200
    return visible(response.content.decode())


def again(repository: Path, path: str = PATH) -> None:
    """Ingest what has changed."""
    ingest(repository, "lighthouse")
    queue.drain()


def test_the_page_has_the_number_and_asks_for_the_rest(client: Client, folder: Path) -> None:
    ingest_sample(folder)
    turn = answered()
    html = client.get("/chat?c=c1").content.decode()
    assert f'hx-get="/ui/chat/standing?c=c1&amp;turn={turn.pk}"' in html
    assert "3 citations" in visible(html)
    assert head(client, turn) == "3 citations, 3 still hold"


@pytest.mark.parametrize("ingested", [False, True])
def test_citations_are_compared_with_the_disk(client: Client, folder: Path, ingested: bool) -> None:
    commit_all(init(write_files(folder, SAMPLE)))
    ingest(folder, "lighthouse")
    turn = answered()
    file = folder / PATH
    file.write_text("# one\n\n" + file.read_text().replace("RetryPolicy", "Policy"))
    (folder / "src/store.js").rename(folder / "src/ships.js")
    if ingested:
        again(folder)
    shown = head(client, turn)
    assert shown.startswith("3 citations, 2 still hold")
    assert "1 retry.py:6–8 moved to retry.py:8–10" in shown
    assert "2 retry.py:11–12 changed" in shown
    assert "3 store.js:1–3 moved to ships.js:1–3" in shown
    assert shown.endswith("Ask again")
    # The viewer reads what is ingested, and follows lines from there.
    html = client.get("/ui/chat/standing", {"c": "c1", "turn": str(turn.pk)}).content.decode()
    places = re.findall(r'data-source="[^"]*path=([^&]*)&amp;start=(\d+)', html)
    now = [(PATH, "8"), (PATH, "11"), ("src/ships.js", "1")]
    then = [(PATH, "6"), (PATH, "11"), ("src/store.js", "1")]
    assert [(unquote(path), start) for path, start in places] == (now if ingested else then)


def test_without_commits_the_text_of_the_answer_is_compared(client: Client, folder: Path) -> None:
    ingest_sample(folder)
    turn = answered()
    file = folder / PATH
    file.write_text("# one\n\n" + file.read_text().replace("How often", "When"))
    (folder / "src/store.js").unlink()
    again(folder)
    shown = head(client, turn)
    assert shown.startswith("3 citations, 1 still holds")
    assert "retry.py:11–12 changed" in shown
    assert "store.js:1–3 gone" in shown


def test_lines_whose_text_was_not_shown_hold_as_they_were_ingested(
    client: Client, folder: Path
) -> None:
    commit_all(init(write_files(folder, SAMPLE)))
    file = folder / PATH
    file.write_text("# not in the commit\n" + file.read_text())
    ingest(folder, "lighthouse")
    turn = answered(f"It doubles (`lighthouse/{PATH}:7-9`).", PATH, tool="FileOutline")
    assert head(client, turn) == "1 citation, 1 still holds"
    file.write_text(file.read_text().replace("def backoff_delay", "def delay_of"))
    assert head(client, turn).startswith("1 citation, 0 still hold")
    again(folder)
    # The commit has other lines there.
    assert head(client, turn).startswith("1 citation, 0 still hold, 1 cannot be checked")


@pytest.mark.parametrize("harm", ["folder", "repository"])
def test_what_cannot_be_looked_at_is_not_gone(client: Client, folder: Path, harm: str) -> None:
    root = ingest_sample(folder)
    turn = answered()
    if harm == "folder":
        folder.rename(folder.parent / "away")
    else:
        root.delete()
    shown = head(client, turn)
    assert shown.startswith("3 citations, 0 still hold, 3 cannot be checked")
    assert "Ask again" not in shown


def test_an_answer_that_is_not_stored_says_nothing(client: Client, folder: Path) -> None:
    ingest_sample(folder)
    answered()
    for turn in ("", "x", "0b8b4c9e-7a0c-4a3c-9d5d-6f6f6f6f6f6f"):
        response = client.get("/ui/chat/standing", {"c": "c1", "turn": turn})
        assert (response.status_code, response.content) == (204, b"")
    assert client.get("/ui/chat/standing", {"c": "other"}).status_code == 404
