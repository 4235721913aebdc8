"""The health of this process. `/health` responds within a second even if a check hangs."""

import time
from typing import Any

from apps.site.checks import parts
from apps.site.checks.findings import Finding
from apps.site.checks.runner import CheckRunner

STARTED = time.monotonic()
# Time limit of the checks for `/health`, which must respond within a second.
LIMIT_SECONDS = 0.7
# Checks of servers are expensive: results of this age are reused for `/health`.
FRESH_SECONDS = 2.0
# Time limit of the checks for the home page. A server may take some seconds to answer.
PAGE_LIMIT_SECONDS = 8.0

runner = CheckRunner()


async def quick() -> list[Finding]:
    """Check all parts, for `/health`."""
    return _shown(await runner.run(parts.all_parts(), LIMIT_SECONDS, FRESH_SECONDS))


async def thorough() -> list[Finding]:
    """Check all parts without cached results, for the home page."""
    return _shown(await runner.run(parts.all_parts(), PAGE_LIMIT_SECONDS))


def _shown(found: list[Finding]) -> list[Finding]:
    """Leave out that there are no unknown folders."""
    return [one for one in found if (one.id, one.level) != (parts.ORPHANS.id, "ok")]


def wire(found: list[Finding], *, details: bool) -> dict[str, Any]:
    """Return part → `{state, word, detail?, fix?}`. Ids with a colon (`providers:openai`) become
    nested objects."""
    body: dict[str, Any] = {}
    for part in found:
        kind, _, name = part.id.partition(":")
        shown: dict[str, str] = {"state": part.level, "word": part.word}
        if details:
            shown["detail"] = part.detail
            if part.fix:
                shown["fix"] = part.fix
        if name:
            body.setdefault(kind, {})[name] = shown
        else:
            body[kind] = shown
    return body


def uptime_seconds() -> float:
    """Return the seconds since this process started."""
    return round(time.monotonic() - STARTED, 3)
