"""The folder that a client works in is ingested at its first call, if it is one project."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.core.security.authentication import server_token
from apps.core.types import JSON
from apps.index.models import IngestRun, Root
from apps.ingest import first_use, services
from apps.ingest.runs import queue
from apps.ingest.runs.submit import work_waiting
from apps.mcp import scoping
from tests.mcp.doors.workspace import DOCK, call, found, refused, repos
from tests.mcp.speech import EVERY, META, PREFIX, STATELESS, ask, headers_for, request, send
from tests.support.git import init
from tests.support.ingested import SAMPLE, ingest, write_files
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.door]

ELSEWHERE = "All other repositories were looked into."
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CARGO = {"Cargo.toml": "[package]\n", "src/buoy.rs": "fn float_the_buoy() {}\n"}


@pytest.fixture
def home(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    configure: Callable[..., None],
    transactional_db: None,
) -> Iterator[Path]:
    """The home folder, an ingest base as by default, with `harbour` in it, which is ingested."""
    home = tmp_path / "home"
    configure(ingest_base=(home, tmp_path / "base"))
    monkeypatch.setenv("HOME", str(home))
    write_files(tmp_path / "base", CARGO)
    write_files(tmp_path / "outside", CARGO)
    ingest(write_files(home / "all" / "harbour", DOCK), "harbour")
    work_waiting.clear()
    yield home
    IngestRun.objects.live().update(state="cancelled", slot=None)


def owner(**more: str) -> dict[str, str]:
    """The headers of the bridge."""
    return {"authorization": f"Bearer {server_token()}"} | more


async def first_call(where: object, **fields: Any) -> JSON:
    """The answer to a call from a folder, while the worker does its ingest."""
    headers = owner() | fields.pop("headers", {})
    pending = asyncio.create_task(found("Grep", where, headers=headers, pattern="buoy", **fields))
    await asyncio.to_thread(work_waiting.wait, 60)
    await asyncio.to_thread(queue.drain)
    return await pending


async def ingested() -> list[str]:
    return [root.path async for root in Root.objects.published().order_by("path")]


class TestFirstUse:
    @pytest.mark.parametrize("version", EVERY)
    async def test_the_first_call_ingests_the_folder_and_is_answered_from_it(
        self, version: str, home: Path
    ) -> None:
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        output = await first_call(buoy, version=version)
        assert repos(output) == {"buoy"} and "workspace" not in output
        again = await found("Grep", buoy / "src", headers=owner(), pattern="buoy")
        assert repos(again) == {"buoy"}
        assert await IngestRun.objects.filter(path=str(buoy)).acount() == 1

    @pytest.mark.parametrize("start", ["", "file://"])
    async def test_an_absolute_path_in_it_is_a_first_call_too(self, start: str, home: Path) -> None:
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        output = await first_call(buoy, path=f"{start}{buoy}/src/buoy.rs")
        assert [row["relPath"] for row in output["results"]] == ["src/buoy.rs"]
        text = await refused("Grep", home, headers=owner(), pattern="x", path=f"{home}/none/a.py")
        assert "in no ingested folder" in text

    async def test_when_a_client_begins_a_worker_is_prepared_for_it(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected: list[None] = []
        monkeypatch.setattr(first_use.supervisor, "expect", lambda: expected.append(None))
        await asyncio.to_thread(write_files, home / "buoy", CARGO)
        await asyncio.to_thread(write_files, home / "plain", SAMPLE)

        async def begin(where: str, **more: str) -> int:
            expected.clear()
            headers = {"Codeinfo-Workspace": str(home / where)} | more
            reply = await ask("initialize", HELLO, "2024-11-05", "/mcp", **headers)
            assert reply.result["serverInfo"]["name"] == "codeinfo"
            return len(expected)

        assert await begin("buoy", **owner()) == 1
        # Nothing is ingested by itself there.
        assert await begin("buoy") == 0
        assert await begin("plain", **owner()) == 0
        assert await begin("all/harbour", **owner()) == 0
        assert await begin("buoy", **owner(**{"Codeinfo-Workspace-Ingest": "ask"})) == 0
        assert await IngestRun.objects.acount() == 1

    async def test_a_client_begins_though_its_folder_does_not_answer(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mounted = threading.Event()
        monkeypatch.setattr(scoping, "EXPECT_SECONDS", 0.01)
        monkeypatch.setattr(first_use, "expect", lambda folder: mounted.wait())
        headers = owner(**{"Codeinfo-Workspace": str(home / "buoy")})
        try:
            reply = await ask("initialize", HELLO, "2024-11-05", "/mcp", **headers)
        finally:
            mounted.set()
        assert reply.result["serverInfo"]["name"] == "codeinfo"

    async def test_below_the_top_of_a_work_tree_all_of_it_is_ingested(self, home: Path) -> None:
        top = init(write_files(home / "buoy", {"src/a.rs": "// the buoy\n", "b.md": "A buoy\n"}))
        output = await first_call(top / "src")
        assert {row["relPath"] for row in output["results"]} == {"src/a.rs", "b.md"}
        assert str(top) in await ingested()

    async def test_of_a_home_folder_in_git_only_the_project_is(self, home: Path) -> None:
        init(home)
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        assert repos(await first_call(buoy)) == {"buoy"}

    async def test_calls_at_once_share_one_ingest(self, home: Path) -> None:
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        calls = [
            asyncio.create_task(found("Grep", buoy, headers=owner(), pattern="buoy"))
            for _ in range(3)
        ]
        await asyncio.to_thread(work_waiting.wait, 60)
        await asyncio.to_thread(queue.drain)
        assert [repos(await one) for one in calls] == [{"buoy"}] * 3
        assert await IngestRun.objects.filter(path=str(buoy)).acount() == 1

    @pytest.mark.parametrize("other", ["raft", "again/buoy"])
    async def test_folders_at_once_wait_their_turn(self, other: str, home: Path) -> None:
        folders = [home / "buoy", home / other]
        for folder in folders:
            await asyncio.to_thread(write_files, folder, CARGO)
        calls = [
            asyncio.create_task(found("Grep", folder, headers=owner(), pattern="buoy"))
            for folder in folders
        ]
        await asyncio.to_thread(wait_until, lambda: IngestRun.objects.live().count() == 2)
        await asyncio.to_thread(queue.drain)
        # Whichever was first has the name of its folder.
        paths = {root.name: root.path async for root in Root.objects.all()}
        named = [repos(await one) for one in calls]
        assert [paths[name] for (name,) in named] == [str(folder) for folder in folders]

    async def test_of_many_folders_at_once_the_last_are_told_to_wait(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(services, "MAX_WAITING", 1)
        monkeypatch.setattr(scoping, "WAIT_SECONDS", 0.01)
        for name in ("buoy", "raft"):
            await asyncio.to_thread(write_files, home / name, CARGO)
        assert "Queued" in await refused("Grep", home / "buoy", headers=owner(), pattern="x")
        output = await found("Grep", home / "raft", headers=owner(), pattern="ship")
        assert "Another ingest is queued" in output["workspace"]

    async def test_while_it_is_ingested_the_answer_says_how_far(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scoping, "WAIT_SECONDS", 0.01)
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        text = await refused("Grep", buoy, headers=owner(), pattern="buoy")
        assert text.startswith(f"BUSY: {buoy}: it is being ingested: Queued")
        await IngestRun.objects.filter(path=str(buoy)).aupdate(file_index=20, file_total=3000)
        text = await refused("Grep", buoy, headers=owner(), pattern="buoy")
        assert "it is being ingested: 20 of 3,000 files. Call again" in text
        others = await found("Grep", buoy, headers=owner(), pattern="ship", repository="*")
        assert repos(others) == {"harbour"}
        both = [buoy, home / "all" / "harbour"]
        output = await found("Grep", both, headers=owner(), pattern="ship")
        assert repos(output) == {"harbour"} and "20 of 3,000 files" in output["workspace"]

    @pytest.mark.parametrize(
        ("where", "reason"),
        [
            ("/", "Only folders beneath"),
            ("{home}", "no single project"),
            ("{home}/../base", "no single project"),
            ("{home}/../base/src", "neither in a git work tree"),
            ("{home}/all", "contains the ingested folder"),
            ("{home}/plain", "neither in a git work tree"),
            ("{home}/empty", "neither in a git work tree"),
            ("{home}/broken", "is broken"),
            ("{home}/out", "Only folders beneath"),
            ("{home}/../outside", "Only folders beneath"),
            ("{home}/missing", "does not exist"),
            ("{home}/file", "is not a folder"),
            ("{home}/all/harbour/../../plain", "neither in a git work tree"),
            ("no id", "Only folders beneath"),
        ],
    )
    async def test_what_is_no_project_is_not_ingested_and_the_answer_says_so(
        self, where: str, reason: str, home: Path
    ) -> None:
        (home / "broken" / ".git").mkdir(parents=True)
        write_files(home, CARGO)
        write_files(home / "all", CARGO)
        write_files(home / "plain", SAMPLE)
        write_files(home, {"file": "x", "empty/.keep": ""})
        (home / "out").symlink_to(home.parent / "outside")
        output = await found("Grep", where.format(home=home), headers=owner(), pattern="ship")
        assert repos(output) == {"harbour"}
        assert reason in output["workspace"] and output["workspace"].endswith(ELSEWHERE)
        assert await IngestRun.objects.acount() == 1

    async def test_a_folder_of_another_user_is_not_ingested(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        monkeypatch.setattr("apps.core.system.posix.user_id", lambda: os.getuid() + 1)
        output = await found("Grep", buoy, headers=owner(), pattern="ship")
        assert "belongs to another user" in output["workspace"]
        assert await IngestRun.objects.acount() == 1

    async def test_without_the_bridge_nothing_is_ingested(
        self, home: Path, configure: Callable[..., None]
    ) -> None:
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        configure(ingest_base=(home,), mcp_token="staff", api_token="staff")
        headers = {"authorization": "Bearer staff", "Codeinfo-Workspace-Ingest": "yes"}
        output = await found("Grep", buoy, headers=headers, pattern="ship")
        assert "only its owner" in output["workspace"]
        assert await IngestRun.objects.acount() == 1

    async def test_off_ingests_nothing(self, home: Path, configure: Callable[..., None]) -> None:
        configure(ingest_base=(home,), mcp_workspace="off")
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        output = await found("Grep", buoy, headers=owner(), pattern="ship")
        assert "workspace" not in output and await IngestRun.objects.acount() == 1

    async def test_an_empty_index_says_why_it_stays_empty(
        self, folder: Path, transactional_db: None
    ) -> None:
        text = await refused("Grep", folder, headers=owner(), pattern="ship")
        assert text.startswith("INGEST_REQUIRED") and "neither in a git work tree" in text

    @pytest.mark.parametrize(
        ("end", "reason"),
        [
            ({"state": "cancelled"}, "its ingest was cancelled"),
            ({"state": "error", "last_error": "No room."}, "its ingest failed: No room."),
            ({"state": "completed", "operation": "remove"}, "it was removed from the index"),
        ],
    )
    async def test_what_was_ended_or_removed_is_not_ingested_again(
        self, end: dict[str, str], reason: str, home: Path
    ) -> None:
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        run = await asyncio.to_thread(services.start_next, str(buoy))
        await IngestRun.objects.filter(id=run.id).aupdate(slot=None, **end)
        output = await found("Grep", buoy, headers=owner(), pattern="ship")
        assert reason in output["workspace"]
        assert not await IngestRun.objects.live().aexists()


class TestAQuestion:
    async def test_a_large_folder_is_ingested_when_the_user_agrees(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(first_use, "MAX_FILES", 1)
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        first = await self.asked(buoy)
        assert first["resultType"] == "input_required"
        (question,) = first["inputRequests"].values()
        assert question["method"] == "elicitation/create"
        assert "has more than 1 files" in question["params"]["message"]
        # The next call is not asked again, and is answered.
        second = (await self.asked(buoy))["structuredContent"]
        assert f"codeinfo ingest {buoy}" in second["workspace"] and not second["results"]
        ((name, _),) = first["inputRequests"].items()
        no = (await self.asked(buoy, **{name: {"action": "decline"}}))["structuredContent"]
        assert "ask the user" in no["workspace"]
        assert not await IngestRun.objects.live().aexists()
        yes = {name: {"action": "accept", "content": {}}}
        pending = asyncio.create_task(self.asked(buoy, **yes))
        await asyncio.to_thread(work_waiting.wait, 60)
        await asyncio.to_thread(queue.drain)
        assert repos((await pending)["structuredContent"]) == {"buoy"}

    async def test_a_question_of_another_reason_is_asked_again(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(first_use, "MAX_FILES", 1)
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        with monkeypatch.context() as patch:
            patch.setattr(first_use, "is_near", lambda model: False)
            (question,) = (await self.asked(buoy))["inputRequests"].values()
            assert "on another machine" in question["params"]["message"]
        # What is sent nowhere is counted then.
        (question,) = (await self.asked(buoy))["inputRequests"].values()
        assert "has more than 1 files" in question["params"]["message"]
        assert "structuredContent" in await self.asked(buoy)

    async def test_to_agree_to_one_folder_is_not_to_agree_to_another(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(first_use, "MAX_FILES", 1)
        monkeypatch.setattr(scoping, "WAIT_SECONDS", 0.01)
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        raft = await asyncio.to_thread(write_files, home / "raft", CARGO)
        both = f"{buoy},{raft}"
        ((name, first),) = (await self.asked(both))["inputRequests"].items()
        assert str(buoy) in first["params"]["message"]
        yes = {name: {"action": "accept", "content": {}}}
        # Where it can be used, the call does not end with BUSY for the first before it asks.
        await asyncio.to_thread(services.start_next, str(buoy))
        await asyncio.to_thread(queue.drain)
        ((_, second),) = (await self.asked(both, **yes))["inputRequests"].items()
        assert str(raft) in second["params"]["message"]
        assert not await IngestRun.objects.filter(path=str(raft)).aexists()

    @pytest.mark.parametrize("version", EVERY)
    async def test_answers_that_are_none_are_no_consent(
        self, version: str, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(first_use, "MAX_FILES", 1)
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        params = {"name": "Grep", "arguments": {"pattern": "x"}, "inputResponses": ["accept"]}
        where = owner(**{"Codeinfo-Workspace": str(buoy)})
        reply = await ask("tools/call", params, version, "/mcp", **where)
        assert "INTERNAL_ERROR" not in str(reply.body)
        assert not await IngestRun.objects.live().aexists()

    async def asked(self, where: Path | str, **answers: JSON) -> JSON:
        """The result for a client of 2026-07-28 that asks its user."""
        meta = META | {f"{PREFIX}/clientCapabilities": {"elicitation": {}}}
        params = {"name": "Grep", "arguments": {"pattern": "buoy"}, "_meta": meta}
        body = request("tools/call", params | ({"inputResponses": answers} if answers else {}))
        headers = headers_for(body, STATELESS) | owner() | {"Codeinfo-Workspace": str(where)}
        return (await send(body, **headers)).result

    async def test_other_clients_get_a_sentence_and_the_question_for_the_bridge(
        self, home: Path, configure: Callable[..., None]
    ) -> None:
        configure(ingest_base=(home,), mcp_workspace="ask")
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        for version in EVERY:
            result = await call("Grep", buoy, version=version, headers=owner(), pattern="buoy")
            text = result["content"][0]["text"]
            assert f"codeinfo ingest {buoy}` ingests it" in text and "_question" not in text
            assert str(buoy) in result["_meta"]["codeinfo/question"]
        configure(ingest_base=(home,), mcp_workspace="auto")
        for consent in ("ask", "never", " ASK "):
            headers = owner(**{"Codeinfo-Workspace-Ingest": consent})
            await found("Grep", buoy, headers=headers, pattern="buoy")
        assert not await IngestRun.objects.live().aexists()
        # It is no question of a client that does not ask for it.
        assert repos(await first_call(buoy)) == {"buoy"}

    async def test_text_for_another_machine_needs_one(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(first_use, "is_near", lambda model: False)
        buoy = await asyncio.to_thread(write_files, home / "buoy", CARGO)
        output = await found("Grep", buoy, headers=owner(), pattern="buoy")
        assert "an embedding server on another machine" in output["workspace"]
        assert not await IngestRun.objects.live().aexists()
