"""What the home page tells: which parts answer, what is stored where, which versions run."""

import asyncio
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import django
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection
from django.db.models import Sum

from apps.agents.providers.base import Provider
from apps.conversations.models import Conversation
from apps.ingest import queries
from apps.ingest.models import Root
from apps.site import health
from codeinfo import __version__
from codeinfo.conf import knobs
from codeinfo.errors import CodeinfoError

Level = Literal["ok", "warn", "bad", "off"]


@dataclass(frozen=True)
class Service:
    """One row of "What is connected". `word` is its state, `detail` what, where, or why not."""

    name: str
    detail: str
    level: Level
    word: str


async def services() -> list[Service]:
    """Every part we depend on, all asked at once. Never raises: a part that fails says why."""
    return list(
        await asyncio.gather(
            database(),
            sync_to_async(embedder)(),
            sync_to_async(vector_store)(),
            *(chat_provider(provider) for provider in _providers()),
        )
    )


def _providers() -> list[Provider]:
    # The registry knows every provider and their SDKs; only the home page and a chat need it.
    from apps.agents.providers.registry import providers  # noqa: PLC0415

    return list(providers().values())


async def database() -> Service:
    name = _database_name()
    if await health.database_connected():
        return Service("Database", name, "ok", "Connected")
    return Service(
        "Database", f"{name} does not answer. Chat works, nothing is kept.", "bad", "Away"
    )


def embedder() -> Service:
    # The embedding package loads weights; it is imported when it is first needed.
    from apps.ingest.embedding import DEFAULT_MODEL, get_embedder  # noqa: PLC0415

    def detail() -> str:
        lock = queries.index_lock()
        model = get_embedder(lock.model if lock else DEFAULT_MODEL).id
        return f"{model}, {'built in' if ':' not in model else 'over the network'}"

    return _asked("Search and embedding", detail, "Ready")


def vector_store() -> Service:
    # chromadb takes a second to import.
    from apps.ingest.vectors.store import get_store  # noqa: PLC0415

    def detail() -> str:
        collections = len(get_store().collections())
        return f"{_store_name()}, {collections} collection{'' if collections == 1 else 's'}"

    return _asked("Vector store", detail, "Ready")


def _asked(name: str, ask: Callable[[], str], word: str) -> Service:
    try:
        return Service(name, ask(), "ok", word)
    except CodeinfoError as error:
        return Service(name, error.message, "bad", "Away")
    except DatabaseError:
        return Service(name, "Not known while the database is away.", "warn", "Unknown")


async def chat_provider(provider: Provider) -> Service:
    state = await provider.availability()
    if not state.available:
        return Service(provider.label, state.reason or "Not set up.", "off", "Not available")
    try:
        models = await provider.models()
    except CodeinfoError as error:
        return Service(provider.label, error.message, "warn", "No models")
    count = f"{len(models)} model{'' if len(models) == 1 else 's'}"
    tools = "" if state.tools_available else ", without tools"
    return Service(provider.label, count + tools, "ok", "Ready")


DATABASE_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mongodb": "MongoDB"}


def _database_name() -> str:
    return DATABASE_NAMES.get(connection.vendor, connection.vendor)


def _store_name() -> str:
    return f"Chroma at {knobs().chroma_url}" if knobs().chroma_url else "Chroma embedded"


def storage() -> dict[str, str]:
    """Label → where it is kept and how much there is. Needs the database."""
    chunks = Root.objects.aggregate(total=Sum("chunks"))["total"] or 0
    vectors = f"{_store_name()}, {chunks:,} chunks"
    if not knobs().chroma_url:
        vectors += f", {folder_size(knobs().data_dir / 'chroma') / 1e6:,.1f} MB"
    return {
        "Conversations": f"{_database_name()}, {Conversation.objects.count():,} kept",
        "Vectors": vectors,
        "Live updates": "Redis" if knobs().redis_url else "In memory",
    }


def folder_size(folder: Path) -> int:
    """Bytes of the regular files below a folder; a file that goes meanwhile counts nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def versions() -> dict[str, str]:
    """Label → version. Client and server are one program, released together."""
    return {
        "Client version": __version__,
        "Server version": __version__,
        "Python, Django": f"{platform.python_version()}, {django.get_version()}",
    }


def report(facts: dict[str, str]) -> str:
    """The facts as lines that can be pasted into a bug report."""
    return "\n".join(f"{label}: {value}" for label, value in facts.items())
