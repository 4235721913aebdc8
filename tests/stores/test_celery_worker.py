"""A server and a worker of Celery on one database and one Redis, without a Chroma server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from apps.core.config import config
from tests.browser.product import HOME, Product, running
from tests.stores.servers import owners_of_runs, stores_called
from tests.support.ingested import SAMPLE, write_files
from tests.support.served import start_ingest

PATIENCE = 60


@pytest.fixture
def stores() -> dict[str, str]:
    """With a broker beside the notices."""
    return {
        **stores_called("worked"),
        "CHROMA_URL": "",
        "CELERY_BROKER_URL": config().redis_url.replace("/0", "/1"),
    }


@contextmanager
def working(product: Product, stores: dict[str, str]) -> Iterator[int]:
    """The process id of a worker with the product's settings and data folder."""
    environ = {
        "PATH": str(Path(sys.executable).parent),
        "HOME": str(product.data.parent),
        "CODEINFO_DATA_DIR": str(product.data),
        "CODEINFO_INGEST_BASE": str(product.repos),
    }
    command = ["celery", "-A", "codeinfo.celery", "worker", "-B", "-s", f"{product.data}/beat"]
    with subprocess.Popen(
        [str(Path(sys.executable).with_name(command[0])), *command[1:]],
        cwd=HOME,
        env=environ | stores,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as worker:
        yield worker.pid
        worker.terminate()


def frames(socket: Any) -> Iterator[dict[str, Any]]:
    while True:
        yield json.loads(socket.recv(timeout=PATIENCE))


def test_the_worker_ingests_and_the_server_s_pages_see_it(
    tmp_path: Path, stores: dict[str, str]
) -> None:
    with running(tmp_path, **stores) as product, working(product, stores) as worker:
        repo = write_files(product.repos / "lighthouse", SAMPLE)
        with connect(f"{product.url.replace('http', 'ws')}/ws", open_timeout=PATIENCE) as socket:
            hello = {"protocolVersion": "v1", "requestId": "r", "type": "subscribe_ingest"}
            socket.send(json.dumps(hello))
            start_ingest(product, repo)
            states = (frame.get("status") or {} for frame in frames(socket))
            ended = next(s for s in states if s.get("state") in ("completed", "error"))
        assert ended["state"] == "completed", ended
        (signature,) = owners_of_runs(stores["DATABASE_URL"])
        assert str(worker) in signature.split(":")
        found = httpx.post(
            f"{product.url}/tools/vector-search", json={"query": "retry"}, timeout=PATIENCE
        )
        assert found.json()["results"][0]["relPath"] == "src/retry.py"
