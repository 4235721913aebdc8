"""`python -m training`: train the weights of the built-in embedder from scratch."""

import argparse
import logging
import sys
from pathlib import Path

from training.corpus import Folders
from training.manifest import write_manifest
from training.pin import pinned
from training.rebuild import rebuild

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument(
        "--work", type=Path, default=ROOT / "data" / "training", help="kept between runs"
    )
    parser.add_argument("--processes", type=int, default=2)
    steps = parser.add_subparsers(dest="step")
    pin = steps.add_parser("pin", help="make the manifest of freshly downloaded archives")
    pin.add_argument("folder", type=Path)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    if options.step == "pin":
        write_manifest(pinned(options.folder))
    else:
        rebuild(Folders(options.work.resolve()), options.processes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
