"""Everything that can be asked of an installation, whether its server runs or not."""

from functools import partial
from typing import Any

from apps.core.errors import Unavailable
from apps.ingest.runs import orphans
from apps.site.checks import parts, setup
from apps.site.checks.asking import Asker, Check, in_thread
from apps.site.checks.findings import Finding

LIMIT_SECONDS = 60.0

# What the server holds while it runs, and only it can tell of.
SERVERS_OWN = (parts.VECTORS, parts.WORKER)


async def diagnose() -> list[Finding]:
    """The set-up first, then the parts. Never raises, and ends."""
    health = await in_thread(setup.own_server)
    own = {check.id for check in SERVERS_OWN} | {parts.ORPHANS.id}
    checks = [check for check in parts.all_parts() if check.id not in own]
    if health is None:
        # The worker is the server's: without one there is nothing to say of it.
        checks += [parts.VECTORS_EXAMINED, UNKNOWN]
    found = await Asker().ask([*setup.checks(served=health is not None), *checks], LIMIT_SECONDS)
    if health is None:
        return found
    found += [_told(check, health) for check in SERVERS_OWN]
    # The server speaks of it where there is something to say.
    there = parts.ORPHANS.id in health.get("parts", {})
    return [*found, _told(parts.ORPHANS, health) if there else parts.orphans_finding([])]


def _unknown() -> Finding:
    """Read from the stores, which no server has open."""
    try:
        return parts.orphans_finding(orphans.find())
    except Unavailable:
        detail = "Not known until the vector store can be read."
        return Finding(parts.ORPHANS.id, parts.ORPHANS.name, "off", "Unknown", detail)


UNKNOWN = Check(parts.ORPHANS.id, parts.ORPHANS.name, partial(in_thread, _unknown))


def _told(check: Check, health: dict[str, Any]) -> Finding:
    """What the running server says of one of its parts."""
    reported = health.get("parts", {}).get(check.id)
    if not isinstance(reported, dict):
        return Finding(check.id, check.name, "warn", "Unknown", "An older codeinfo runs here.")
    detail = reported.get("detail", "As the server says, which runs.")
    level, word, fix = (
        reported.get("state", "warn"),
        reported.get("word", ""),
        reported.get("fix", ""),
    )
    return Finding(check.id, check.name, level, word, detail, fix)
