"""index_repository: off by default; a folder beneath the base is ingested, and nothing else."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from mcp import Client

from apps.core.errors import CodeinfoError, Conflict, InvalidInput, NotFound
from apps.core.principal import Principal, acting_as
from apps.embedding.static import MODEL_ID
from apps.index.models import Clone, IngestRun, Root
from apps.ingest import services
from apps.ingest.runs import queue
from apps.mcp.indexing import INDEX_REPOSITORY
from apps.mcp.search import SEARCH
from tests.browser.product import Product, running
from tests.mcp.doors.clients import MODES, result_of
from tests.mcp.doors.conftest import Caller
from tests.mcp.speech import EVERY, PATIENCE, ask
from tests.support.git import commit_all, git, init
from tests.support.git_servers import HOST, https_server
from tests.support.ingested import SAMPLE, write_files

ON = {"CODEINFO_MCP_INGEST": "true"}
in_process = pytest.mark.django_db(transaction=True)


def offered() -> bool:
    return "index_repository" in {tool.name for tool in SEARCH.registry()}


@pytest.fixture
def base(tmp_path: Path, configure: Callable[..., None], transactional_db: None) -> Iterator[Path]:
    """The ingest base, beside a folder that is outside of it; nobody takes runs from the queue."""
    base, outside = tmp_path / "base", tmp_path / "outside"
    for folder in (base / "lighthouse", outside):
        write_files(folder, SAMPLE)
    (base / "file.txt").write_text("x")
    (base / "out").symlink_to(outside)
    (base / "in").symlink_to(base / "lighthouse")
    configure(mcp_ingest=True, ingest_base=(base,))
    yield base
    IngestRun.objects.live().update(state="cancelled", slot=None)


async def index(caller: Caller, **arguments: str) -> dict[str, Any]:
    """Call the tool, and do its queued run."""
    caller.progress.clear()
    pending = asyncio.create_task(caller.call(INDEX_REPOSITORY, **arguments))
    await caller.hears("Queued")
    await asyncio.to_thread(queue.drain)
    answer = await pending
    jsonschema.validate(answer, INDEX_REPOSITORY.output_schema)
    return answer


class TestTheSetting:
    def test_it_is_off_by_default(self, configure: Callable[..., None]) -> None:
        assert not offered()
        configure(mcp_ingest=True)
        assert offered()

    @pytest.mark.django_db
    @pytest.mark.parametrize("version", EVERY)
    async def test_while_it_is_off_a_call_is_one_of_an_unknown_tool(self, version: str) -> None:
        params = {"name": "index_repository", "arguments": {"path": "/"}}
        answer = await ask("tools/call", params, version)
        assert answer.error["message"] == "Unknown tool index_repository"
        assert not await IngestRun.objects.aexists()

    @pytest.mark.django_db
    async def test_our_own_codex_never_gets_it(self, configure: Callable[..., None]) -> None:
        configure(mcp_ingest=True)
        for query in ("tool=index_repository", "repository=acme"):
            listed = (await ask("tools/list", {}, path=f"/mcp?{query}")).result["tools"]
            assert "index_repository" not in {tool["name"] for tool in listed}

    @pytest.mark.django_db
    async def test_it_says_that_it_writes(self, configure: Callable[..., None]) -> None:
        configure(mcp_ingest=True)
        listed = (await ask("tools/list", {})).result["tools"]
        (tool,) = [tool for tool in listed if tool["name"] == "index_repository"]
        assert tool["annotations"]["readOnlyHint"] is False
        # At most 200 tokens of o200k, of which one has about four characters of English.
        schema = json.dumps(tool["inputSchema"], separators=(",", ":"))
        assert len(tool["name"] + tool["description"] + schema) < 4 * 200


@in_process
@pytest.mark.door
class TestARun:
    async def test_the_answer_comes_when_the_folder_can_be_searched(
        self, base: Path, caller: Caller
    ) -> None:
        answer = await index(caller, path=str(base / "lighthouse"))
        run = await IngestRun.objects.aget()
        assert (answer["runId"], answer["state"]) == (str(run.id), "completed")
        assert answer["repository"] == "lighthouse"
        root = await Root.objects.aget()
        assert answer["counts"]["files"] == root.files > 0
        assert (root.path, root.name, root.model) == (
            *(str(base / "lighthouse"), "lighthouse"),
            MODEL_ID,
        )

    async def test_name_and_description_are_kept_when_they_are_left_out_later(
        self, base: Path, caller: Caller
    ) -> None:
        path = str(base / "lighthouse")
        await index(caller, path=path, name=" Light\0 ", description="Ships.")
        await Root.objects.aupdate(plain_folder=True)
        again = await index(caller, path=str(base / "in" / ".." / "lighthouse"))
        root = await Root.objects.aget()
        assert again["repository"] == root.name == "Light\ufffd"
        assert (root.description, root.plain_folder) == ("Ships.", True)
        await index(caller, path=path, description="Boats.")
        assert (await Root.objects.aget()).description == "Boats."

    async def test_the_base_itself_may_be_ingested(self, base: Path, caller: Caller) -> None:
        assert (await index(caller, path=f"{base}/"))["repository"] == "base"

    async def test_a_folder_may_be_named_as_on_the_host(
        self, base: Path, caller: Caller, configure: Callable[..., None]
    ) -> None:
        configure(mcp_ingest=True, ingest_base=(base,), host_ingest_dir="/home/me/src")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("apps.ingest.folders.CONTAINER_BASE", base)
            answer = await index(caller, path="/home/me/src/lighthouse")
            assert answer["state"] == "completed"
            with pytest.raises(InvalidInput, match="Only folders beneath"):
                await caller.call(INDEX_REPOSITORY, path="/home/me/src/nothing")

    async def test_a_name_of_another_repository_is_refused(
        self, base: Path, caller: Caller
    ) -> None:
        await index(caller, path=str(base / "lighthouse"))
        await asyncio.to_thread(write_files, base / "other", SAMPLE)
        with pytest.raises(Conflict, match="already called 'lighthouse'") as taken:
            await caller.call(INDEX_REPOSITORY, path=str(base / "other"), name="lighthouse")
        assert taken.value.code == "NAME_TAKEN"

    async def test_one_ingest_at_a_time_and_the_refusal_names_it(
        self, base: Path, caller: Caller
    ) -> None:
        path = str(base / "lighthouse")
        await asyncio.to_thread(services.start_run, path=path, name="first", model=MODEL_ID)
        with pytest.raises(Conflict, match="ingest of 'first' is queued or under way") as busy:
            await caller.call(INDEX_REPOSITORY, path=path)
        assert busy.value.code == "BUSY"

    async def test_a_url_is_taken_of_hosts_that_are_named(
        self, base: Path, caller: Caller, folder: Path, monkeypatch: Any, configure: Any
    ) -> None:
        repository = init(folder / "served/harbour")
        write_files(repository, SAMPLE)
        commit_all(repository)
        monkeypatch.setenv("HOME", str(folder))
        with https_server(folder / "served", folder / "keys") as server:
            settings = folder / ".gitconfig"
            settings.write_text(f"[http]\n\tsslCAInfo = {server.authorities}\n")
            with pytest.raises(InvalidInput, match="CLONE_HOSTS"):
                await caller.call(INDEX_REPOSITORY, path=f"{server.url}/harbour")
            configure(clone_hosts=(HOST,), git_config=settings)
            answer = await index(caller, path=f"{server.url}/harbour")
        assert (answer["state"], answer["repository"]) == ("completed", "harbour")
        await asyncio.to_thread(services.remove, (await Root.objects.aget()).path)

    async def test_a_ref_of_a_folder_is_taken(
        self, base: Path, caller: Caller, configure: Callable[..., None]
    ) -> None:
        """Also of one that is named as on the host. Of a clone, its host must be named."""
        await asyncio.to_thread(with_tag, base / "lighthouse", "v1")
        configure(mcp_ingest=True, ingest_base=(base,), host_ingest_dir="/home/me/src")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("apps.ingest.folders.CONTAINER_BASE", base)
            answer = await index(caller, path="/home/me/src/lighthouse@v1")
        assert (answer["state"], answer["repository"]) == ("completed", "lighthouse@v1")
        clone = await Clone.objects.aget()
        await Clone.objects.aupdate(url="https://github.com/a/lighthouse@v1")
        with pytest.raises(InvalidInput, match="CLONE_HOSTS"):
            await caller.call(INDEX_REPOSITORY, path=f"{clone.path}@v2")
        await asyncio.to_thread(services.remove, clone.path)

    async def test_a_disconnect_cancels_the_run(self, base: Path, caller: Caller) -> None:
        pending = asyncio.create_task(caller.call(INDEX_REPOSITORY, path=str(base / "lighthouse")))
        await caller.hears("Queued")
        pending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pending
        assert (await IngestRun.objects.aget()).state == "cancelled"
        assert not await Root.objects.published().aexists()

    async def test_it_is_for_staff(self, base: Path, caller: Caller) -> None:
        with acting_as(Principal("user", user_id=1)), pytest.raises(InvalidInput) as refused:
            await caller.call(INDEX_REPOSITORY, path=str(base / "lighthouse"))
        assert refused.value.code == "FORBIDDEN"


def with_tag(folder: Path, name: str) -> None:
    commit_all(init(folder))
    git(folder, "tag", name)


HOSTILE = [
    ("{base}/../outside", InvalidInput, "OUTSIDE_BASE"),
    ("{base}/lighthouse/../../outside", InvalidInput, "OUTSIDE_BASE"),
    ("{base}/out", InvalidInput, "OUTSIDE_BASE"),
    ("{base}/../base2", InvalidInput, "OUTSIDE_BASE"),
    ("/", InvalidInput, "OUTSIDE_BASE"),
    ("/etc", InvalidInput, "OUTSIDE_BASE"),
    ("/nowhere", InvalidInput, "OUTSIDE_BASE"),
    ("lighthouse", InvalidInput, "OUTSIDE_BASE"),
    ("~", InvalidInput, "OUTSIDE_BASE"),
    (" ", InvalidInput, "OUTSIDE_BASE"),
    ("{base}/light\0house", InvalidInput, "OUTSIDE_BASE"),
    ("https://github.com/a/b", InvalidInput, "URL_REFUSED"),
    ("git@github.com:a/b", InvalidInput, "URL_REFUSED"),
    ("file://{base}/lighthouse", InvalidInput, "URL_REFUSED"),
    ("http://127.0.0.1/a", InvalidInput, "URL_REFUSED"),
    ("{base}/lighthouse@--upload-pack=x", InvalidInput, "URL_REFUSED"),
    ("{base}/../outside@v1", InvalidInput, "OUTSIDE_BASE"),
    ("{base}/missing@v1", NotFound, "NOT_FOUND"),
    ("{base}/file.txt", InvalidInput, "NOT_DIRECTORY"),
    ("{base}/missing", NotFound, "NOT_FOUND"),
    ("{base}/" + "x" * 300, NotFound, "NOT_FOUND"),
    ("{base}" + "/x" * 4_000, NotFound, "NOT_FOUND"),
]


@in_process
@pytest.mark.parametrize(("path", "kind", "code"), HOSTILE)
async def test_what_is_no_folder_beneath_the_base_is_refused(
    base: Path, caller: Caller, path: str, kind: type[CodeinfoError], code: str
) -> None:
    with pytest.raises(kind) as refused:
        await caller.call(INDEX_REPOSITORY, path=path.replace("{base}", str(base)))
    assert refused.value.code == code
    assert not await IngestRun.objects.aexists()


WRONG = [
    ({}, "path is required"),
    ({"path": ""}, "path: '' should be non-empty"),
    ({"path": 7}, "path: 7 is not of type 'string'"),
    ({"path": "/" + "x" * 10_000}, "path: breaks maxLength 10000"),
    ({"path": "/x", "name": "x" * 256}, "name: breaks maxLength 255"),
    ({"path": "/x", "description": "x" * 100_001}, "description: breaks maxLength 100000"),
    ({"path": "/x", "model": "m"}, "known are: path, name, description"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("arguments", "problem"), WRONG)
async def test_wrong_arguments_are_named(
    arguments: dict[str, Any], problem: str, configure: Callable[..., None]
) -> None:
    configure(mcp_ingest=True)
    answer = await ask("tools/call", {"name": "index_repository", "arguments": arguments})
    assert problem in json.dumps(answer.json, ensure_ascii=False)
    assert not await IngestRun.objects.aexists()


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("mcp-ingest"), **ON) as served:
        outside = served.repos.parent / "outside"
        write_files(outside, SAMPLE)
        (served.repos / "out").symlink_to(outside)
        yield served


@pytest.mark.door
@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_adds_a_repository(mode: str, product: Product) -> None:
    folder = write_files(product.repos / mode, SAMPLE)
    steps: list[str | None] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(message)

    async with Client(f"{product.url}/mcp", mode=mode) as client:
        answer = await client.call_tool(
            "index_repository",
            {"path": str(folder), "name": f"sample-{mode}"},
            read_timeout_seconds=PATIENCE,
            progress_callback=on_progress,
        )
        assert not answer.is_error, answer.content
        done = dict(answer.structured_content)
        assert (done["state"], done["repository"]) == ("completed", f"sample-{mode}")
        assert steps
        only = {"repository": done["repository"]}
        found = await result_of(client, "VectorSearch", query="how long a retry waits", **only)
        assert {match["repo"] for match in found["results"]} == {f"sample-{mode}"}
        refused = await client.call_tool("index_repository", {"path": str(product.repos / "out")})
        assert refused.is_error and refused.content[0].text.startswith("OUTSIDE_BASE")


@pytest.mark.door
async def test_closing_the_call_cancels_its_run(product: Product) -> None:
    lines = "".join(f"def f{n}():\n    return {n}\n\n" for n in range(200))
    write_files(product.repos / "large", {f"m{n}.py": lines + f"# {n}\n" for n in range(400)})
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "index_repository",
            "arguments": {"path": str(product.repos / "large")},
            "_meta": {"progressToken": 1},
        },
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
    }
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        async with http.stream(
            "POST", f"{product.url}/mcp", json=message, headers=headers
        ) as stream:
            async for line in stream.aiter_lines():
                if "notifications/progress" in line:
                    break
        # One ingest runs at a time, so the next one is refused until the run has ended.
        small = write_files(product.repos / "small", SAMPLE)
        async with Client(f"{product.url}/mcp") as client:
            while True:
                answer = await client.call_tool("index_repository", {"path": str(small)})
                if not answer.is_error:
                    break
                assert answer.content[0].text.startswith("BUSY")
            listed = await result_of(client, "ListIngestedRepositories")
    ids = {repository["id"] for repository in listed["repos"]}
    assert "small" in ids and "large" not in ids
