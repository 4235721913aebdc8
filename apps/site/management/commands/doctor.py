"""`manage.py doctor`: checks this installation, and shows how to fix problems."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from apps.core import __version__
from apps.core.config import config
from apps.site.checks.diagnosis import diagnose
from apps.site.checks.findings import Finding
from apps.site.management.store_command import StoreCommand

MARKS = {"ok": "ok", "warn": "LOOK", "bad": "BROKEN", "off": "off"}


class Command(StoreCommand):
    help = "Check the installation. Exit code 1 if something is broken."

    def handle(self, *args: Any, **options: Any) -> None:
        findings = asyncio.run(diagnose())
        self.stdout.write(as_json(findings) if options["json"] else as_table(findings))
        if broken(findings):
            raise SystemExit(1)


def broken(found: Sequence[Finding]) -> int:
    return sum(finding.level == "bad" for finding in found)


def as_json(found: Sequence[Finding]) -> str:
    body = {"ok": not broken(found), "version": __version__, "checks": [asdict(f) for f in found]}
    return json.dumps(body, indent=2)


def as_table(found: Sequence[Finding]) -> str:
    """Return one line for each check, and the fix below it."""
    width = max(len(finding.name) for finding in found)
    lines = [f"codeinfo {__version__}, data folder {config().data_dir}", ""]
    for finding in found:
        lines.append(f"  {MARKS[finding.level]:6}  {finding.name:{width}}  {finding.detail}")
        if finding.fix and finding.level in ("warn", "bad"):
            lines.append(f"  {'':6}  {'':{width}}  > {finding.fix}")
    warnings = sum(finding.level == "warn" for finding in found)
    lines += ["", f"{broken(found)} broken, {warnings} to look at, {len(found)} checked."]
    return "\n".join(lines)
