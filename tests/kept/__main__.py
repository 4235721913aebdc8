"""`python -m tests.kept`: add a data folder of the present format."""

import os
from datetime import UTC, datetime
from tempfile import TemporaryDirectory

import django


def main() -> None:
    with TemporaryDirectory(prefix="codeinfo-kept-") as folder:
        os.environ["CODEINFO_DATA_DIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "codeinfo.settings")
        django.setup()
        from tests.kept import folders  # noqa: PLC0415 - it needs the settings

        file = folders.HERE / f"{datetime.now(UTC):%Y-%m-%d-%H%M}.tar.xz"
        folders.make(file)
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
