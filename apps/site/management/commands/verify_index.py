"""`manage.py verify_index`: compares rows, parts and folder of each root."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import CommandParser

from apps.ingest.verification.types import HARMLESS
from apps.logs.redaction import visible
from apps.site.control.client import perform
from apps.site.management.store_command import StoreCommand

COLUMNS = ("rows", "chunks", "indexed", "files", "parsed")


class Command(StoreCommand):
    help = (
        "Compare rows, the index and, with --source, the folders. Exit code 1 if there "
        "are differences, after a repair. A running server does the work; otherwise "
        "this process does."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("roots", nargs="*", metavar="ROOT", help="path or name; all if none")
        parser.add_argument("--source", action="store_true", help="also read the folders")
        parser.add_argument("--repair", action="store_true", help="repair the differences")

    def handle(self, *args: Any, **options: Any) -> None:
        arguments = {
            "source": options["source"],
            "mending": options["repair"],
            "roots": options["roots"],
        }
        with self.errors():
            outcome = perform("verify", arguments, self.report)
        self.stdout.write(json.dumps(outcome, indent=2) if options["json"] else as_table(outcome))
        if not outcome["whole"]:
            raise SystemExit(1)


def as_table(found: Mapping[str, Any]) -> str:
    """Return one line for each root, and its differences below it."""
    roots: Sequence[Mapping[str, Any]] = found["roots"]
    width = max((len(root["root"]) for root in roots), default=0)
    lines = [f"{'root':{width}}  " + "  ".join(f"{name:>9}" for name in COLUMNS)]
    for root in roots:
        numbers = "  ".join(f"{root[name]:>9,}" for name in COLUMNS)
        lines.append(f"{root['root']:{width}}  {numbers}")
        lines += [f"  note: {note}" for note in root["notes"]]
        lines += [_line(difference) for difference in root["differences"]]
    for difference in found["shared"]:
        lines += [difference["root"] or "index", _line(difference)]
    return "\n".join([*(visible(line) for line in lines), "", _total(found)])


def _line(difference: Mapping[str, str]) -> str:
    return f"  {difference['kind']}: {difference['detail']}"


def _total(found: Mapping[str, Any]) -> str:
    roots = found["roots"]
    differences = [entry for root in roots for entry in root["differences"]] + found["shared"]
    harmless = sum(difference["kind"] in HARMLESS for difference in differences)
    real = len(differences) - harmless
    summary = (
        f"{real} difference{'' if real == 1 else 's'} in "
        f"{len(roots)} root{'' if len(roots) == 1 else 's'}"
    )
    if harmless:
        summary += f", {harmless} that need no repair"
    if found["foundFirst"] > len(differences):
        summary += f"; {found['foundFirst'] - len(differences)} repaired"
    return f"{summary}."
