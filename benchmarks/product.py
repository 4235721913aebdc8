"""codeinfo for benchmarks, with its own data folder.

It runs as a server in another process that is used over HTTP (`serving`), or in this process
(`set_up`). Only one process at a time may use a data folder.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
import httpx
from django.core.management import call_command

if TYPE_CHECKING:
    from apps.index.models import IngestRun

HERE = Path(__file__).resolve().parent.parent
START_SECONDS, STOP_SECONDS, LOOK_SECONDS = 180, 60, 0.05


def environment(data: Path, folders: Sequence[Path]) -> dict[str, str]:
    """Config of a product with all its state in `data`, which may ingest beneath `folders`."""
    ports = dict(zip(("PORT", "MCP_PORT", "AGENTS_MCP_PORT"), free_ports(3), strict=True))
    return {
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
        "CODEINFO_DATA_DIR": str(data),
        "CODEINFO_INGEST_BASE": ",".join(map(str, folders)),
        "CODEINFO_FIRST_ROOT": "none",
        "CODEINFO_REQUIRE_LOGIN": "false",
        "CODEINFO_API_TOKEN": "",
        "CHROMA_URL": "",
        # A benchmark of Chroma says so: it would work beside what others measure.
        "CODEINFO_CHROMA": "off",
        "DATABASE_URL": "",
        "MONGO_URI": "",
        "LOG_LEVEL": "error",
        **{name: str(port) for name, port in ports.items()},
    }


def free_ports(count: int) -> list[int]:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(server.getsockname()[1]) for server in servers]
    for server in servers:
        server.close()
    return ports


# --- in this process ------------------------------------------------------------------------------


def set_up(data: Path, folders: Sequence[Path], **more: str) -> None:
    """Django in this process, with threads as in the server, and with more settings. What loads the
    product's code is imported after this."""
    os.environ |= environment(data, folders) | more
    django.setup()
    from apps.core.system.heap import limit_arenas
    from apps.site.server import SWITCH_SECONDS

    limit_arenas()
    sys.setswitchinterval(SWITCH_SECONDS)
    call_command("migrate", verbosity=0)


def ingest(folder: Path, name: str) -> "IngestRun":
    """Ingest a folder with the built-in embedder, here and now; the completed run. Raises
    RuntimeError with the reason where it does not complete."""
    from apps.embedding.catalogue import DEFAULT_MODEL
    from apps.ingest import services
    from apps.ingest.runs import queue

    run = services.start_run(path=str(folder), name=name, model=DEFAULT_MODEL)
    queue.drain()
    run.refresh_from_db()
    if run.state != "completed":
        raise RuntimeError(f"ingest of {folder}: {run.state} {run.last_error}")
    return run


# --- as a server ----------------------------------------------------------------------------------


@contextmanager
def serving(data: Path, folders: Sequence[Path], **more: str) -> Iterator[httpx.Client]:
    """A client of a server of its own, with more settings, which is stopped at the end. Raises
    RuntimeError where it does not start."""
    config = environment(data, folders) | more
    command = [sys.executable, str(HERE / "manage.py"), "serve"]
    server = subprocess.Popen(command, env=os.environ | config, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{config['PORT']}"
    try:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            _await(server, client)
            yield client
    finally:
        server.terminate()
        server.wait(STOP_SECONDS)


def _await(server: "subprocess.Popen[bytes]", client: httpx.Client) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            answer(client.get("/version"))
        except httpx.TransportError:
            time.sleep(LOOK_SECONDS)
        else:
            return
    raise RuntimeError("the server did not start")


def start_over_http(client: httpx.Client, folder: Path, name: str) -> str:
    """Start the ingest of a folder through the API; the id of its run."""
    models = answer(client.get("/ingest/models"))
    model = models["lockedModelId"] or models["models"][0]["id"]
    body = {"path": str(folder), "name": name, "model": model}
    return str(answer(client.post("/ingest/start", json=body))["runId"])


def wait_over_http(client: httpx.Client, run: str, seconds: float = LOOK_SECONDS) -> dict[str, Any]:
    """Wait for a run, and look every few seconds; the status that it ended with."""
    from apps.index.types import TERMINAL_STATES

    while (status := answer(client.get(f"/ingest/status/{run}")))["state"] not in TERMINAL_STATES:
        time.sleep(seconds)
    return status


def wait_for_chroma(client: httpx.Client, seconds: float = LOOK_SECONDS) -> None:
    """Wait until Chroma has all that is published; `/health` may answer as some seconds ago. Raises
    RuntimeError if it fails."""
    vectors = f", {sum(ingested(client).values()):,} vectors"
    while True:
        chroma = answer(client.get("/health"))["parts"]["chroma"]
        if chroma["word"] == "Failed":
            raise RuntimeError(f"Chroma: {chroma['detail']}")
        if chroma["word"] == "Complete" and chroma["detail"].endswith(vectors):
            return
        time.sleep(seconds)


def ingest_over_http(client: httpx.Client, folder: Path, name: str) -> dict[str, Any]:
    """Ingest a folder through the API and wait for it; the status that it ended with. Raises
    RuntimeError with the reason where it does not complete."""
    status = wait_over_http(client, start_over_http(client, folder, name))
    if status["state"] != "completed":
        raise RuntimeError(f"ingest of {folder}: {status}")
    return status


def ingested(client: httpx.Client) -> dict[str, int]:
    """How many chunks each repository has, by its name."""
    repos = answer(client.get("/tools/ingested-repos"))["repos"]
    return {repo["id"]: repo["counts"]["embedded"] for repo in repos}


def answer(response: httpx.Response) -> dict[str, Any]:
    """The body of a good answer; RuntimeError for any other."""
    if not response.is_success:
        raise RuntimeError(f"{response.request.url}: {response.status_code} {response.text[:200]}")
    body: dict[str, Any] = response.json()
    return body
