"""`make soak ROUNDS=n`: play rounds until there are `n`, and print the table of all of them."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django

FOLDER = Path(__file__).resolve().parents[2] / ".soak"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="how many there are to be in all")
    parser.add_argument("--worlds", type=int, default=1, help="servers that are harmed at once")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="what is gone on from")
    parser.add_argument("--world", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    share = -(-options.rounds // options.worlds)
    if options.world is not None:
        play(options.folder / f"world-{options.world}", options.world, options.rounds)
        return
    command = [sys.executable, "-m", "tests.soak", "--folder", str(options.folder)]
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
    sys.exit(report(options.folder))


def play(folder: Path, seed: int, rounds: int) -> None:
    """Play in one world until it has so many rounds."""
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
            record = Round(world, number).play()
            world.record(record)
            print(f"world {seed}, round {number}: {line(record)}", flush=True)
            if record["violations"]:
                keep_and_begin_again(world, number)


def keep_and_begin_again(world: Any, number: int) -> None:
    """Keep the data folder of a round that was wrong, and go on with an empty one."""
    world.server.end()
    shutil.copytree(world.data, world.folder / "violations" / str(number), dirs_exist_ok=True)
    shutil.rmtree(world.data)
    world.sent.clear()


def line(record: dict[str, Any]) -> str:
    found = "; ".join(record["violations"]) or "ok"
    return f"{record['kind']}, {record['seconds']} s: {found}"


def report(folder: Path) -> int:
    """Print the rounds by kind; the exit status, 1 where anything was wrong."""
    import json  # noqa: PLC0415

    records = [
        json.loads(text)
        for path in sorted(folder.glob("world-*/rounds.jsonl"))
        for text in path.read_text().splitlines()
    ]
    print(table(records))
    return int(any(record["violations"] for record in records))


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
