"""`python -m tests.browser` draws all pictures; with an expression, the states
whose names begin so."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import django

from tests.browser.chromium import CHROMIUM


def main() -> None:
    if not CHROMIUM.exists():
        sys.exit(f"{CHROMIUM} is not there: apt-get install {CHROMIUM.name}")
    with TemporaryDirectory(prefix="codeinfo-pictures-") as folder:
        os.environ["CODEINFO_DATA_DIR"] = f"{folder}/own"
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")
        django.setup()
        from tests.browser.screenshots import draw  # noqa: PLC0415 - it needs the settings

        if not draw(Path(folder), "".join(sys.argv[1:2])):
            sys.exit("Not all states were reached.")


if __name__ == "__main__":
    main()
