"""`python -m tests.damage` writes benchmarks/results/damage.md; with kinds, it prints theirs."""

import os
import sys
from tempfile import TemporaryDirectory

import django


def main() -> None:
    with TemporaryDirectory(prefix="codeinfo-texts-") as folder:
        os.environ["CODEINFO_DATA_DIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")
        django.setup()
        from tests.damage.texts import write  # noqa: PLC0415 - it needs the settings

        write(sys.argv[1:])


if __name__ == "__main__":
    main()
