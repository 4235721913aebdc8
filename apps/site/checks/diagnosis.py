"""All checks of an installation, whether its server runs or not (`manage.py doctor`)."""

from typing import Any

from apps.site.checks import parts, setup
from apps.site.checks.findings import Finding
from apps.site.checks.runner import Check, CheckRunner, in_thread

LIMIT_SECONDS = 60.0

# Only the running server can check these.
SERVERS_OWN = (parts.INDEX, parts.CHROMA, parts.WORKER)


async def diagnose() -> list[Finding]:
    """Return the findings on the set-up, then those on the parts. Does not raise."""
    address, health = await in_thread(setup.own_server) or (None, None)
    if health is None:
        await in_thread(setup.keep_lost_changes)
    own = {check.id for check in SERVERS_OWN}
    checks = [check for check in parts.all_parts() if check.id not in own | {parts.DATABASE.id}]
    checks.append(parts.DATABASE_EXAMINED)
    if health is None:
        # Without a server there is no worker to check.
        checks += [parts.INDEX_EXAMINED, parts.CHROMA_WITHOUT_SERVER]
    findings = await CheckRunner().run([*setup.checks(address), *checks], LIMIT_SECONDS)
    if health is None:
        return findings
    return findings + [_reported(check, health) for check in SERVERS_OWN]


def _reported(check: Check, health: dict[str, Any]) -> Finding:
    """Return the finding that the running server reports."""
    reported = health.get("parts", {}).get(check.id)
    if not isinstance(reported, dict):
        return Finding(check.id, check.name, "warn", "Unknown", "An older codeinfo runs here.")
    detail = reported.get("detail", "Reported by the running server.")
    word, fix = reported.get("word", ""), reported.get("fix", "")
    return Finding(check.id, check.name, reported.get("state", "warn"), word, detail, fix)
