"""Official clients read resources, prompts and completions, listen for changes, and use tasks."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from apps.core.types import JSON
from apps.mcp.calls import LINKS_META_KEY
from tests.browser.product import Product, running
from tests.mcp.doors.clients import FILE, MODES, TEMPLATE
from tests.mcp.speech import BOTH, KNOWS, PATIENCE, STATELESS, headers_for, request
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import ingest_into

pytestmark = pytest.mark.door


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running(tmp_path_factory.mktemp("mcp")) as served:
        ingest_into(served, write_files(served.repos / "lighthouse", SAMPLE))
        yield served


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_finds_and_reads_a_file(mode: str, product: Product) -> None:
    async with Client(f"{product.url}/mcp", mode=mode) as client:
        (repository, *_) = (await client.list_resources()).resources
        assert repository.uri == "codeinfo://lighthouse/"
        templates = (await client.list_resource_templates()).resource_templates
        assert templates[0].uri_template == TEMPLATE
        ref = ResourceTemplateReference(type="ref/resource", uri=TEMPLATE)
        found = await client.complete(
            ref, {"name": "path", "value": "retry"}, {"repository": "lighthouse"}
        )
        assert found.completion.values == ["src/retry.py"]
        (content,) = (await client.read_resource(FILE)).contents
        assert content.text + "\n" == SAMPLE["src/retry.py"]
        (lines,) = (await client.read_resource(f"{FILE}#L6-L8")).contents
        assert lines.text.startswith("def backoff_delay")
        result = await client.call_tool("FindDefinitions", {"name": "backoff_delay"})
        (uri,) = result.meta[LINKS_META_KEY]
        (linked,) = (await client.read_resource(uri)).contents
        assert linked.text == lines.text
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("codeinfo://lighthouse/none.py")


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_gets_a_prompt(mode: str, product: Product) -> None:
    async with Client(f"{product.url}/mcp", mode=mode) as client:
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["explain", "trace", "review"]
        ref = PromptReference(type="ref/prompt", name="explain")
        found = await client.complete(ref, {"name": "language", "value": "py"})
        assert found.completion.values == ["python"]
        prompt = await client.get_prompt("explain", {"path": "src/retry.py"})
        assert prompt.messages[1].content.resource.uri == FILE
        with pytest.raises(MCPError, match="to is required"):
            await client.get_prompt("trace", {"from": "a"})


async def test_a_client_hears_of_a_new_repository_and_of_the_end(tmp_path: Path) -> None:
    with running(tmp_path) as product:
        async with (
            Client(f"{product.url}/mcp", mode="auto") as client,
            client.listen(resources_list_changed=True) as changes,
        ):
            assert changes.honored.resources_list_changed
            events = aiter(changes)
            ingest_into(product, write_files(product.repos / "lighthouse", SAMPLE))
            await anext(events)
            listed = (await client.list_resources()).resources
            assert [resource.name for resource in listed] == ["lighthouse"]
            os.kill(product.pid, signal.SIGTERM)
            # An answer ends the stream; without one, the client would raise.
            assert [event async for event in events] == []


def about(product: Product, method: str, params: JSON) -> Any:
    """Send one request on a connection of its own."""
    body = request(method, params | {"_meta": KNOWS})
    headers = {"accept": BOTH, **headers_for(body, STATELESS)}
    answer = httpx.post(f"{product.url}/mcp", json=body, headers=headers, timeout=PATIENCE)
    return answer.json()["result"]


def test_a_repository_is_brought_up_to_date_as_a_task(product: Product) -> None:
    (product.repos / "lighthouse" / "task.py").write_text("def kraken_task():\n    return 1\n")
    arguments = {"repository": "lighthouse"}
    made = about(product, "tools/call", {"name": "reingest_repository", "arguments": arguments})
    assert made["resultType"] == "task"
    while (task := about(product, "tasks/get", {"taskId": made["taskId"]}))["status"] == "working":
        pass
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"]["state"] == "completed"
    found = about(
        product, "tools/call", {"name": "FindDefinitions", "arguments": {"name": "kraken_task"}}
    )
    assert found["structuredContent"]["results"][0]["relPath"] == "task.py"
