"""Facts for the home page: storage and versions."""

import platform
from pathlib import Path

import django
from django.db.models import Sum

from apps.conversations.models import Conversation
from apps.core import __version__
from apps.core.config import config
from apps.index.models import Root
from apps.retrieval.repositories import lost_vectors
from apps.site.checks.parts import database_name, store_name


def storage() -> dict[str, str]:
    """Return label → where data is stored, and how much. Lost vectors are included. Raises
    DatabaseError."""
    chunks = Root.objects.aggregate(total=Sum("chunks"))["total"] or 0
    vectors = f"{store_name()}, {chunks:,} chunks"
    if lost := lost_vectors(list(Root.objects.all())):
        vectors += f" ({lost})"
    if not config().chroma_url:
        vectors += f", {folder_size(config().data_dir / 'chroma') / 1e6:,.1f} MB"
    return {
        "Conversations": f"{database_name()}, {Conversation.objects.count():,} kept",
        "Vectors": vectors,
        "Live updates": "Redis" if config().redis_url else "In memory",
    }


def folder_size(folder: Path) -> int:
    """Return the total size of the files below a folder, in bytes."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def versions() -> dict[str, str]:
    """Return label → version. Client and server are one program with one version."""
    return {
        "Client version": __version__,
        "Server version": __version__,
        "Python, Django": f"{platform.python_version()}, {django.get_version()}",
    }


def report(facts: dict[str, str]) -> str:
    """Return the facts as lines for a bug report."""
    return "\n".join(f"{label}: {value}" for label, value in facts.items())
