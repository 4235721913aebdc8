"""Facts for the home page: storage and versions."""

import platform
from pathlib import Path

import django
from django.db.models import Sum

from apps.conversations.models import Conversation
from apps.core import __version__
from apps.core.config import config
from apps.core.system import disk
from apps.index import queries
from apps.index.models import Root
from apps.index.vectors.following import following
from apps.site.checks.parts import database_name

# The folders of the index.
INDEX = ("index", "texts", "grams")


def storage() -> dict[str, str]:
    """Return label → where data is stored, and how much. What is lost is included. Raises
    DatabaseError."""
    chunks = Root.objects.aggregate(total=Sum("chunks"))["total"] or 0
    index = f"{chunks:,} passages"
    if lost := queries.damages():
        index += f" ({'; '.join(f'{name}: {damage}' for name, damage in lost.items())})"
    folder = config().data_dir
    return {
        "Conversations": f"{database_name()}, {Conversation.objects.count():,} kept",
        "Index": f"{index}, {_megabytes(*(folder / name for name in INDEX))}",
        "Chroma": _chroma(folder),
        "Live updates": "Redis" if config().redis_url else "In memory",
    }


def _chroma(folder: Path) -> str:
    if config().chroma == "off":
        return "Off"
    vectors = f"{following().vectors:,} vectors"
    if config().chroma_url:
        return f"At {config().chroma_url}, {vectors}"
    return f"Embedded, {vectors}, {_megabytes(folder / 'chroma')}"


def _megabytes(*folders: Path) -> str:
    return f"{sum(map(disk.size_of, folders)) / 1e6:,.1f} MB"


def versions() -> dict[str, str]:
    """Return label → version. Client and server are one program with one version."""
    return {
        "Client version": __version__,
        "Server version": __version__,
        "Python, Django": f"{platform.python_version()}, {django.get_version()}",
    }
