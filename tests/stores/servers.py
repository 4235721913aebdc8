"""PostgreSQL, MongoDB's protocol, Redis and Chroma on loopback, each in a folder of its own, until
a block ends."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import redis
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from apps.core.config import config
from tests.ports import free_ports
from tests.support.waiting import PATIENCE

START_SECONDS = 60
# PostgreSQL refuses to run as root; Debian's package makes this user.
POSTGRES_USER = "postgres" if os.geteuid() == 0 else None
# Its data outlives no test: nothing waits for the disk.
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A new cluster; DATABASE_URL of its database `codeinfo`."""
    port, data = free_ports(), folder / "data"
    folder.mkdir(mode=0o755)
    if POSTGRES_USER:
        shutil.chown(folder, POSTGRES_USER)
    subprocess.run(
        [postgres_binary("initdb"), "-D", data, "-U", "codeinfo", "--auth=trust", "-E", "UTF8"],
        check=True,
        user=POSTGRES_USER,
        stdout=subprocess.DEVNULL,
    )
    options = [word for setting in FAST for word in ("-c", setting)]
    command = [
        postgres_binary("postgres"),
        *("-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), *options),
    ]
    url = f"postgres://codeinfo@127.0.0.1:{port}"
    with server(command, folder, user=POSTGRES_USER) as process:
        until_it_answers(process, lambda: create_database(f"{url}/postgres", "codeinfo"))
        yield f"{url}/codeinfo"


@contextmanager
def mongodb(folder: Path) -> Iterator[str]:
    """SecantusDB, which keeps its data in MongoDB's engine; DATABASE_URL of an empty database."""
    port = free_ports()
    folder.mkdir()
    program = str(Path(sys.executable).with_name("secantusd-py"))
    options = ("--host", "127.0.0.1", "--port", str(port), "--storage-path", str(folder / "data"))
    url = f"mongodb://127.0.0.1:{port}/codeinfo?replicaSet=secantus"
    with (
        server([program, *options], folder) as process,
        MongoClient[Any](url, serverSelectionTimeoutMS=200) as client,
    ):
        until_it_answers(process, lambda: client.admin.command("ping"))
        yield url


def create_database(url: str, name: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")


def stores_called(name: str) -> dict[str, str]:
    """The settings of a product on these servers, in a database that the tests do not use."""
    parts = urlsplit(config().database_url)
    if parts.scheme.startswith("postgres"):
        create_database(parts._replace(path="/postgres").geturl(), name)
    return {
        "DATABASE_URL": parts._replace(path=f"/{name}").geturl(),
        "CHROMA_URL": config().chroma_url,
        "CODEINFO_CHROMA": "follow",
        "REDIS_URL": config().redis_url,
        "INGEST_COLLECTION": name,
    }


def owners_of_runs(url: str) -> list[str]:
    """Who executed the ingest runs that the database of a DATABASE_URL has."""
    if url.startswith("postgres"):
        with psycopg.connect(url) as rows:
            return [owner for (owner,) in rows.execute("SELECT owner FROM index_ingestrun")]
    with MongoClient[Any](url) as client:
        return [row["owner"] for row in client.get_default_database()["index_ingestrun"].find()]


def postgres_binary(name: str) -> str:
    """Debian keeps the programs of each version apart, outside of PATH; the newest is taken."""
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    return str(max(versions, key=lambda found: float(found.parts[-3])))


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """REDIS_URL of an empty server."""
    port = free_ports()
    folder.mkdir()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    url = f"redis://127.0.0.1:{port}/0"
    with server(command, folder) as process, redis.Redis.from_url(url) as client:
        until_it_answers(process, client.ping)
        yield url


@contextmanager
def chroma(folder: Path) -> Iterator[str]:
    """CHROMA_URL of an empty server."""
    port = free_ports()
    folder.mkdir()
    program = str(Path(sys.executable).with_name("chroma"))
    command = [program, "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with server(command, folder) as process:
        until_it_answers(
            process,
            lambda: httpx.get(f"{url}/api/v2/heartbeat", timeout=PATIENCE).raise_for_status(),
        )
        yield url


@contextmanager
def server(
    command: Sequence[str], folder: Path, user: str | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is ended with the block; what it says goes to a file beside its data."""
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, user=user
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def until_it_answers(process: "subprocess.Popen[bytes]", ask: Callable[[], object]) -> None:
    """Ask again after pauses until it answers; none of them says when it listens."""
    for _ in range(START_SECONDS * 5):
        try:
            ask()
        except (httpx.HTTPError, psycopg.Error, redis.RedisError, PyMongoError):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
                break
        else:
            return
    raise AssertionError(f"did not start: {process.args!r}")
