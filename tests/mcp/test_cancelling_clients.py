"""Official clients end a call: by cancelling it, and by no longer waiting for it."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.browser.product import Product
from tests.mcp.judges import PROGRAMS
from tests.mcp.speech import PATIENCE
from tests.mcp.waiting import waiting
from tests.support.waiting import wait_until

pytestmark = pytest.mark.door

WAYS, FORMS = ("cancel", "timeout"), ("object", "stream")
HERE = Path(__file__).parent


async def until(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, condition)


async def ignore(*progress: Any) -> None: ...


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_python_client_ends_its_call(
    served: Product, mode: str, way: str, form: str
) -> None:
    id = f"python-{mode}-{way}-{form}"
    async with httpx2.AsyncClient(timeout=PATIENCE, headers={"x-request-id": id}) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            call: Awaitable[Any] = client.call_tool(
                "wait",
                {},
                read_timeout_seconds=1 if way == "timeout" else PATIENCE,
                progress_callback=ignore if form == "stream" else None,
            )
            task = asyncio.ensure_future(call)
            await until(lambda: id in waiting(served))
            if way == "cancel":
                task.cancel()
            await until(lambda: id not in waiting(served))
            await asyncio.wait({task}, timeout=PATIENCE)
            assert task.cancelled() if way == "cancel" else task.exception()


@pytest.mark.skipif(
    not (PROGRAMS / "node").exists() and os.environ.get("CI") != "true",
    reason="the clients are not installed: make conformance",
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sdk", ["1", "2"])
async def test_a_typescript_client_ends_its_call(
    served: Product, sdk: str, way: str, form: str
) -> None:
    id = f"typescript-{sdk}-{way}-{form}"
    with typescript(sdk, f"{served.url}/mcp", way, form, id) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == "calling\n"
        await until(lambda: id in waiting(served))
        if way == "cancel":
            process.stdin.write("cancel\n")
            process.stdin.flush()
        await until(lambda: id not in waiting(served))
        assert process.poll() is None
        said, _ = process.communicate(timeout=PATIENCE)
    assert [line for line in said.splitlines() if line.startswith("ended: ")], said


@contextmanager
def typescript(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    command = [str(PROGRAMS / "node"), str(HERE / "cancelling.mjs"), *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
