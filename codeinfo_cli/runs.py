"""The status of an ingest run in words."""

from collections.abc import Mapping
from typing import Any

from codeinfo_cli.terminal import counted


def facts_of(status: Mapping[str, Any]) -> str:
    """Return "120 of 400 files, 0:12 left", as far as it is known."""
    index, total = status.get("fileIndex"), status.get("fileTotal")
    facts = [f"{index:,} of {counted(total, 'file')}"] if index is not None and total else []
    eta = status.get("etaMs")
    if eta is not None and status["state"] == "embedding":
        seconds = round(eta / 1000)
        facts.append(f"{seconds // 60}:{seconds % 60:02} left")
    return ", ".join(facts)
