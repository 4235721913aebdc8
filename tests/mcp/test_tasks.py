"""Long calls as tasks: the extension io.modelcontextprotocol/tasks of 2026-07-28."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from django.test import override_settings
from django.urls import path

from apps.core.errors import NotFound
from apps.core.principal import Principal, acting_as
from apps.core.types import JSON
from apps.mcp import tasks
from apps.mcp.rpc import serve
from apps.mcp.types import Call, McpEndpoint, McpTool
from apps.mcp.wire import RpcError
from tests.mcp.endpoint import OPEN, serving
from tests.mcp.speech import HANDSHAKE, KNOWS, META, PATIENCE, STATELESS, Answer, ask


class Work:
    """A tool that ends when it is told how."""

    def __init__(self) -> None:
        self.started, self.ended, self.go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.error: Exception | None = None

    async def run(self, arguments: Mapping[str, Any], call: Call) -> JSON:
        self.started.set()
        try:
            await call.progress("Half of it is done")
            await self.go_on.wait()
        finally:
            self.ended.set()
        if self.error:
            raise self.error
        return {"done": True}


@pytest.fixture(autouse=True)
def no_tasks() -> Iterator[None]:
    tasks.live_tasks.clear()
    yield
    tasks.live_tasks.clear()


@pytest.fixture
def work() -> Iterator[Work]:
    """On /mcp, the tool `work` takes long; /mcp/chat is another endpoint."""
    made = Work()
    tool = McpTool("work", "Work", "Works.", OPEN, OPEN, made.run, takes_long=True)
    endpoint = McpEndpoint("test", "test", "Work.", lambda: (tool,), "test2")
    urls = ModuleType("urls")
    patterns = [path("mcp", serve(endpoint)), path("mcp/chat", serve(replace(endpoint, name="b")))]
    vars(urls).update(urlpatterns=patterns)
    with override_settings(ROOT_URLCONF=urls):
        yield made


async def call(meta: JSON = KNOWS, version: str = STATELESS) -> Answer:
    return await ask("tools/call", {"name": "work", "arguments": {}, "_meta": meta}, version)


async def about(method: str, id: Any, meta: JSON = KNOWS, path: str = "/mcp") -> Answer:
    return await ask(method, {"taskId": id, "_meta": meta}, STATELESS, path)


async def ended(id: str) -> JSON:
    async with asyncio.timeout(PATIENCE):
        while True:
            task = (await about("tasks/get", id)).result
            if task["status"] != "working":
                return task


async def test_a_long_call_answers_with_a_task(work: Work) -> None:
    made = (await call()).result
    assert (made["resultType"], made["status"]) == ("task", "working")
    assert made["ttlMs"] == tasks.KEPT_SECONDS * 1000
    assert "result" not in made
    # The connection of the call is closed by now, and the work goes on.
    await asyncio.wait_for(work.started.wait(), PATIENCE)
    known = (await about("tasks/get", made["taskId"])).result
    assert (known["resultType"], known["status"]) == ("complete", "working")
    assert known["statusMessage"] == "Half of it is done"
    work.go_on.set()
    task = await ended(made["taskId"])
    assert (task["status"], task["result"]["structuredContent"]) == ("completed", {"done": True})
    assert (await about("tasks/get", made["taskId"])).result["result"] == task["result"]


async def test_a_failed_tool_completes_its_task(work: Work) -> None:
    work.error = NotFound("It is gone.", code="REPO_NOT_FOUND")
    work.go_on.set()
    task = await ended((await call()).result["taskId"])
    assert (task["status"], task["result"]["isError"]) == ("completed", True)
    assert "REPO_NOT_FOUND" in task["result"]["content"][0]["text"]


async def test_a_protocol_error_fails_its_task(work: Work) -> None:
    work.error = RpcError(-32603, "Broken")
    work.go_on.set()
    task = await ended((await call()).result["taskId"])
    assert (task["status"], task["error"]["code"]) == ("failed", -32603)
    assert "result" not in task


async def test_a_cancelled_task_ends_its_work(work: Work) -> None:
    id = (await call()).result["taskId"]
    await asyncio.wait_for(work.started.wait(), PATIENCE)
    assert set((await about("tasks/cancel", id)).result) == {"resultType", "_meta"}
    task = await ended(id)
    assert task["status"] == "cancelled" and work.ended.is_set()
    assert not {"result", "error"} & set(task)
    # Again, and after the end, it has no effect.
    assert (await about("tasks/cancel", id)).status == 200
    assert (await about("tasks/update", id)).result["resultType"] == "complete"


@pytest.mark.parametrize("version", [*HANDSHAKE, STATELESS])
async def test_other_clients_get_the_result(work: Work, version: str) -> None:
    work.go_on.set()
    meta = META if version == STATELESS else {}
    result = (await call(meta, version)).result
    assert result["structuredContent"] == {"done": True}
    assert result.get("resultType", "complete") == "complete"
    assert tasks.live_tasks == {}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_tasks_are_for_clients_that_declare_them(work: Work, method: str) -> None:
    id = (await call()).result["taskId"]
    answer = await about(method, id, META)
    assert (answer.status, answer.error["code"]) == (400, -32021)
    assert answer.error["data"]["requiredCapabilities"]["extensions"] == {tasks.EXTENSION: {}}
    work.go_on.set()
    await ended(id)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_only_who_started_a_task_knows_it(work: Work, method: str) -> None:
    id = (await call()).result["taskId"]
    for wrong, place in ((id[:-1], "/mcp"), ("", "/mcp"), (id, "/mcp/chat")):
        answer = await about(method, wrong, path=place)
        assert (answer.status, answer.error["code"]) == (400, -32602)
    tasks.live_tasks[id].owner = ("test", "user", "7")
    assert (await about(method, id)).error["code"] == -32602
    assert not work.ended.is_set()
    await asyncio.wait_for(work.started.wait(), PATIENCE)
    work.go_on.set()


def test_owners_are_users_of_an_endpoint() -> None:
    endpoint = McpEndpoint("a", "a", "", tuple, "a")
    owners = set()
    for principal in (Principal("user", 1), Principal("user", 2), Principal("token")):
        with acting_as(principal):
            owners |= {tasks.owner_of(endpoint), tasks.owner_of(replace(endpoint, name="b"))}
    assert len(owners) == 6


async def test_a_task_is_discarded_when_its_time_is_over(work: Work) -> None:
    id = (await call()).result["taskId"]
    await asyncio.wait_for(work.started.wait(), PATIENCE)
    tasks.live_tasks[id].created -= timedelta(seconds=tasks.KEPT_SECONDS)
    assert (await about("tasks/get", id)).error["code"] == -32602
    assert tasks.has_room()
    assert tasks.live_tasks == {}
    await asyncio.wait_for(work.ended.wait(), PATIENCE)


async def test_beyond_the_limit_calls_wait_for_their_result(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MAX_TASKS", 1)
    work.go_on.set()
    assert (await call()).result["resultType"] == "task"
    assert (await call()).result["structuredContent"] == {"done": True}


async def test_a_short_call_answers_with_its_result() -> None:
    async def short(arguments: Mapping[str, Any], call: Call) -> JSON:
        return {"short": True}

    async with serving(short):
        assert (await call()).result["structuredContent"] == {"short": True}
        discovered = (await ask("server/discover")).result
    assert "extensions" not in discovered["capabilities"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/chat", "/mcp/agents"])
async def test_every_endpoint_of_ours_offers_tasks(path: str) -> None:
    capabilities = (await ask("server/discover", path=path)).result["capabilities"]
    assert capabilities["extensions"] == {tasks.EXTENSION: {}}
