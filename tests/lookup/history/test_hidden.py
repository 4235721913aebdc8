"""History shows nothing that an ingest leaves out, of no commit."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.agents.tools import toolset
from apps.core.errors import InvalidInput
from apps.index.types import Area
from tests.lookup.history.conftest import Ask
from tests.support.git import commit_all, init
from tests.support.ingested import ingest, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

HIDDEN = ("abc-secret", "MIIEvQ", "hunter2", "VENDOR = 1", "PLAN =")


def test_a_diff_leaves_out_what_an_ingest_would(fleet: Path, ask: Ask) -> None:
    answers = [
        ask(of="diff", to="v1~1", limit=100)[1],
        ask(of="diff", to="release", limit=100)[1],
        ask(of="diff", **{"from": "HEAD", "to": "v1~1"}, limit=100)[1],
    ]
    text = json.dumps(answers)
    assert not [word for word in HIDDEN if word in text]
    for answer in answers:
        paths = {row["relPath"] for row in answer["results"]}
        hidden = {".env", "notes/server.txt", "config/local.ini", "vendor/lib.py"}
        assert not paths & hidden
    # It says what is left out, and why.
    assert "Secret 1" in answers[1]["notes"]
    assert "notes/server.txt is left out: Secret" in answers[1]["notes"]


@pytest.mark.parametrize(
    "path", [".env", "config/local.ini", "vendor/lib.py", "private/plan.py", "private"]
)
@pytest.mark.parametrize("of", ["log", "diff"])
def test_what_is_left_out_has_no_history(fleet: Path, ask: Ask, path: str, of: str) -> None:
    status, answer = ask(of=of, path=path)
    assert (status, answer["error"]) == (400, "FORBIDDEN_PATH")


def test_a_chat_sees_only_its_paths(fleet: Path) -> None:
    (tool,) = toolset((), ("History",), (Area("fleet", "src/"),))
    for of in ("log", "blame", "diff"):
        with pytest.raises(InvalidInput) as caught:
            tool.run({"of": of, "path": "README.md"})
        assert caught.value.code == "FORBIDDEN_PATH"
    with pytest.raises(InvalidInput, match="Name a path"):
        tool.run({"of": "log"})
    found = tool.run({"of": "diff", "path": "src", "from": "v1~1", "to": "HEAD"})
    assert {row["relPath"] for row in found["results"]} == {"src/ship.py", "src/new.py"}
    assert [row["kind"] for row in tool.run({"path": "src/ship.py"})["results"]] == ["commit"] * 2


def test_a_chat_sees_no_commit_that_is_about_other_paths(fleet: Path) -> None:
    (tool,) = toolset((), ("History",), (Area("fleet", "src/"),))
    about_src = tool.run({"of": "diff", "path": "src", "to": "v1"})
    assert about_src["commit"]["author"] == "Ben"
    other = tool.run({"of": "diff", "path": "src", "to": "HEAD~1"})
    assert "commit" not in other
    assert "Take the secrets out" not in json.dumps(other)


def test_a_chat_may_look_into_all_of_one_repository_beside_paths_of_another(fleet: Path) -> None:
    (tool,) = toolset((), ("History",), (Area("fleet", ""), Area("fleet", "src/")))
    assert len(tool.run({"of": "log"})["results"]) == 4


def test_a_restricted_endpoint_sees_only_its_paths(fleet: Path, client: Client) -> None:
    def result(**arguments: str) -> dict[str, Any]:
        call = {"name": "History", "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        url = "/mcp?tool=History&repository=fleet&area=fleet%09src/"
        headers = {"accept": "application/json, text/event-stream"}
        response = client.post(url, body, content_type="application/json", headers=headers)
        found: dict[str, Any] = response.json()["result"]
        return found

    assert result(path="README.md")["isError"]
    assert result(of="log")["isError"]
    assert not result(path="src/ship.py").get("isError")


@pytest.mark.parametrize(
    ("before", "root", "messages"),
    [
        ("lib/plan.py", ".", ["Move", "Plan"]),
        ("private/plan.py", ".", ["Move"]),
        ("lib/plan.py", "src", ["Move"]),
    ],
)
def test_a_log_ends_where_the_earlier_name_may_not_be_shown(
    folder: Path, client: Client, before: str, root: str, messages: list[str]
) -> None:
    path = init(folder / "work")
    plan = "".join(f"PLAN_{n} = {n}\n" for n in range(9))
    write_files(path, {before: plan, ".codeinfoignore": "private/\n", "src/a.py": "A = 1\n"})
    commit_all(path, "Plan")
    (path / before).rename(path / "src/plan.py")
    commit_all(path, "Move")
    ingest(path / root)
    name = "plan.py" if root == "src" else "src/plan.py"
    form = {"repository": (path / root).resolve().name, "path": name}
    answer = client.post("/tools/history", form, content_type="application/json").json()
    assert [row["message"] for row in answer["results"]] == messages
