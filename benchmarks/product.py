"""The product inside a benchmark: an empty one in a folder of its own, filled, asked and served.

Everything that loads the product's code is imported after `set_up`, which settles its environment.
"""

# ruff: noqa: PLC0415 - the project is imported once its settings are in the environment

import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import django
from django.core.management import call_command

if TYPE_CHECKING:
    from apps.ingest.models import IngestRun

Result = TypeVar("Result")


def set_up(data: Path, folders: Sequence[Path], **environment: str) -> int:
    """Django with all its state in `data`, which may ingest beneath `folders`. Returns the port
    that it may listen on."""
    port = free_port()
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "codeinfo.settings",
        "CODEINFO_DATA_DIR": str(data),
        "CODEINFO_INGEST_BASE": ",".join(map(str, folders)),
        "CODEINFO_FIRST_ROOT": "none",
        "CODEINFO_REQUIRE_LOGIN": "false",
        "CODEINFO_API_TOKEN": "",
        "CHROMA_URL": "",
        "DATABASE_URL": "",
        "MONGO_URI": "",
        "PORT": str(port),
        **environment,
    }
    django.setup()
    call_command("migrate", verbosity=0)
    return port


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def ingest(folder: Path, name: str) -> "IngestRun":
    """Ingest a folder with the built-in embedder, here and now; the completed run. Raises
    RuntimeError with the reason where it does not complete."""
    from apps.ingest import services
    from apps.ingest.embedding import DEFAULT_MODEL
    from apps.ingest.runs import queue

    run = services.start_run(path=str(folder), name=name, model=DEFAULT_MODEL)
    queue.drain()
    run.refresh_from_db()
    if run.state != "completed":
        raise RuntimeError(f"ingest of {folder}: {run.state} {run.last_error}")
    return run


def serve_while(port: int, work: Callable[[str], Result]) -> Result:
    """Serve from this thread while `work(url)` runs in another; its result, or its error."""
    # First, since it installs the reactor.
    from apps.site import server  # noqa: I001
    from twisted.internet import reactor
    from codeinfo.asgi import application

    pool = ThreadPoolExecutor(1)
    worked: list[Future[Result]] = []

    def begin() -> None:
        worked.append(pool.submit(work, f"http://127.0.0.1:{port}"))
        worked[0].add_done_callback(lambda _: reactor.callFromThread(reactor.stop))

    server.run(application, [f"tcp:port={port}:interface=127.0.0.1"], begin)
    return worked[0].result()
