"""What the tests of the house look at: the project's own files, as git lists them."""

import subprocess
from functools import cache
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent.parent


@cache
def tracked() -> tuple[Path, ...]:
    """Every file of the project, tracked or about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=HOME, capture_output=True, check=True).stdout
    files = (HOME / name for name in names.decode().split("\0") if name)
    return tuple(file for file in files if file.is_file())


@cache
def product() -> tuple[Path, ...]:
    """The Python files of the product: no tests, no migrations, nothing empty."""
    return tuple(
        file
        for file in tracked()
        if file.suffix == ".py"
        and file.relative_to(HOME).parts[0] in ("apps", "codeinfo")
        and "migrations" not in file.parts
        and file.stat().st_size
    )


def name_of(file: Path) -> str:
    return str(file.relative_to(HOME))
