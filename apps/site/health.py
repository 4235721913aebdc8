"""How this process is, told within a second whatever hangs."""

import time
from typing import Any

from apps.site.checks import parts
from apps.site.checks.asking import Asker
from apps.site.checks.findings import Finding

STARTED = time.monotonic()
# `/health` answers within a second; the rest of it is for the way.
LIMIT_SECONDS = 0.7
# Some parts are dear to ask (a server, a store): monitors share what was said.
FRESH_SECONDS = 2.0
# A person who opens the home page waits for the truth, such as a store that is just opening.
PATIENT_SECONDS = 8.0

_asker = Asker()


async def quick() -> list[Finding]:
    """Every part, for monitors."""
    return await _asker.ask(parts.all_parts(opening=False), LIMIT_SECONDS, FRESH_SECONDS)


async def thorough() -> list[Finding]:
    """Every part asked anew, for the home page."""
    return await _asker.ask(parts.all_parts(), PATIENT_SECONDS)


def wire(found: list[Finding], *, details: bool) -> dict[str, Any]:
    """Part → `{state, word, detail?, fix?}`; those of a kind (`providers:openai`) in one object."""
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
    """Seconds since this process started."""
    return round(time.monotonic() - STARTED, 3)
