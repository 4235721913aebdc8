"""`make soak ROUNDS=n`: play rounds until there are `n`, print the table of all of them, and add
them to benchmarks/results/soak.md."""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django

from tests.soak import tally
from tests.soak.disk import IMAGE_BYTES

FOLDER = Path(__file__).resolve().parents[2] / ".soak"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="how many there are to be in all")
    parser.add_argument("--worlds", type=int, default=1, help="servers that are harmed at once")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="no round begins after this time"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="what is gone on from")
    parser.add_argument("--world", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    share = -(-options.rounds // options.worlds)
    if options.world is not None:
        play(options.folder / f"world-{options.world}", options.world, options.rounds, end)
        return
    before = played(options.folder)
    command = [sys.executable, "-m", "tests.soak", "--folder", str(options.folder)]
    command += ["--minutes", str(options.minutes)]
    worlds = [
        subprocess.Popen([*command, "--rounds", str(share), "--world", str(number)])
        for number in range(options.worlds)
    ]
    try:
        for world in worlds:
            world.wait()
    except KeyboardInterrupt:
        for world in worlds:
            world.wait()
    records = played(options.folder)
    tally.add([record for record in records if record not in before])
    print(table(records))
    sys.exit(any(record["violations"] for record in records))


def play(folder: Path, seed: int, rounds: int, end: float) -> None:
    """Play in one world until it has so many rounds, or it is `end` (`time.monotonic`)."""
    # The product's own code says what a clean ingest gives; it is not to touch any data of ours.
    os.environ["CODEINFO_DATA_DIR"] = str(folder / "own")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")
    django.setup()
    from tests.soak.rounds import FAULTS, Round, kinds  # noqa: PLC0415 - these need the settings
    from tests.soak.world import World  # noqa: PLC0415

    with World(folder, seed) as world:
        for kind in set(FAULTS) - set(kinds(world.disk.can_be_full)):
            print(f"world {seed}: not arranged here: {kind}", flush=True)
        for number in range(world.done, rounds):
            if time.monotonic() > end:
                break
            record = Round(world, number).play()
            world.record(record)
            print(f"world {seed}, round {number}: {line(record)}", flush=True)
            if record["violations"]:
                keep_and_begin_again(world, number)


def keep_and_begin_again(world: Any, number: int) -> None:
    """Keep the data folder of a round that was wrong, and go on with an empty one."""
    world.server.end()
    kept = world.folder / "violations" / str(number)
    shutil.copytree(world.data, kept, ignore=larger_than_the_disk, dirs_exist_ok=True)
    shutil.rmtree(world.data)
    world.sent.clear()


def larger_than_the_disk(folder: str, names: list[str]) -> list[str]:
    """Files with holes, which have so many bytes in a copy."""
    paths = {name: Path(folder, name) for name in names}
    return [n for n, p in paths.items() if p.is_file() and p.stat().st_size > IMAGE_BYTES]


def line(record: dict[str, Any]) -> str:
    found = "; ".join(record["violations"]) or "ok"
    return f"{record['kind']}, {record['seconds']} s: {found}"


def played(folder: Path) -> list[dict[str, Any]]:
    """The records of all rounds in a folder."""
    paths = sorted(folder.glob("world-*/rounds.jsonl"))
    return [json.loads(text) for path in paths for text in path.read_text().splitlines()]


def table(records: Sequence[dict[str, Any]]) -> str:
    lines = ["| fault | rounds | violations |", "| --- | --- | --- |"]
    for kind in sorted({record["kind"] for record in records}):
        of_kind = [record for record in records if record["kind"] == kind]
        wrong = sum(bool(record["violations"]) for record in of_kind)
        lines.append(f"| {kind} | {len(of_kind)} | {wrong} |")
    wrong = sum(bool(record["violations"]) for record in records)
    lines.append(f"| all | {len(records)} | {wrong} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
