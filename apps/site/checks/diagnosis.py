"""All checks of an installation, whether its server runs or not (`manage.py doctor`)."""

from functools import partial
from typing import Any

from apps.core.errors import Unavailable
from apps.ingest.runs import orphans
from apps.site.checks import parts, setup
from apps.site.checks.findings import Finding
from apps.site.checks.runner import Check, CheckRunner, in_thread

LIMIT_SECONDS = 60.0

# Only the running server can check these.
SERVERS_OWN = (parts.VECTORS, parts.WORKER)


async def diagnose() -> list[Finding]:
    """Return the findings on the set-up, then those on the parts. Does not raise."""
    address, health = await in_thread(setup.own_server) or (None, None)
    own = {check.id for check in SERVERS_OWN} | {parts.ORPHANS.id}
    checks = [check for check in parts.all_parts() if check.id not in own]
    if health is None:
        # Without a server there is no worker to check.
        checks += [parts.VECTORS_EXAMINED, UNKNOWN]
    findings = await CheckRunner().run([*setup.checks(address), *checks], LIMIT_SECONDS)
    if health is None:
        return findings
    findings += [_reported(check, health) for check in SERVERS_OWN]
    # `/health` includes orphans only if there are any.
    reported = parts.ORPHANS.id in health.get("parts", {})
    return [*findings, _reported(parts.ORPHANS, health) if reported else parts.orphans_finding([])]


def _unknown() -> Finding:
    """Find orphans in the stores. Called only if no server has them open."""
    try:
        return parts.orphans_finding(orphans.find())
    except Unavailable:
        detail = "Not known until the vector store can be read."
        return Finding(parts.ORPHANS.id, parts.ORPHANS.name, "off", "Unknown", detail)


UNKNOWN = Check(parts.ORPHANS.id, parts.ORPHANS.name, partial(in_thread, _unknown))


def _reported(check: Check, health: dict[str, Any]) -> Finding:
    """Return the finding that the running server reports."""
    reported = health.get("parts", {}).get(check.id)
    if not isinstance(reported, dict):
        return Finding(check.id, check.name, "warn", "Unknown", "An older codeinfo runs here.")
    detail = reported.get("detail", "Reported by the running server.")
    level, word, fix = (
        reported.get("state", "warn"),
        reported.get("word", ""),
        reported.get("fix", ""),
    )
    return Finding(check.id, check.name, level, word, detail, fix)
