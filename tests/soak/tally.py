"""Counts the rounds of all sessions in benchmarks/results/soak.md, by day and commit."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.house.sources import HOME

RESULTS = HOME / "benchmarks" / "results" / "soak.md"
COLUMNS = ("day", "commit", "rounds", "kills", "violations", "minutes")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}\n"
Record = Mapping[str, Any]  # of a round


def add(records: Sequence[Record]) -> None:
    """Add rounds that this commit has played today."""
    if records:
        commit = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"], cwd=HOME, capture_output=True, check=True
        )
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        text = RESULTS.read_text()
        RESULTS.write_text(added(text, (day, commit.stdout.decode().strip()), records))


def added(text: str, key: tuple[str, str], records: Sequence[Record]) -> str:
    """Return the document with some more rounds of a day and a commit, and with the sum of all."""
    before, _, table = text.partition(HEAD)
    rows: dict[tuple[str, str], list[int]] = {}
    for line in table.splitlines():
        day, commit, *counts = re.findall(r"[^| ]+", line)
        if day != "all":
            rows[day, commit] = [int(count.replace(",", "")) for count in counts]
    new = [
        len(records),
        sum(record["kills"] for record in records),
        sum(bool(record["violations"]) for record in records),
        round(sum(record["seconds"] for record in records) / 60),
    ]
    rows[key] = [sum(both) for both in zip(rows.get(key, [0] * len(new)), new, strict=True)]
    rows["all", "all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [f"| {' | '.join([*key, *(f'{n:,}' for n in row)])} |\n" for key, row in rows.items()]
    return before + HEAD + "".join(lines)
