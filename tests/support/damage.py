"""Ways to break what an installation keeps, done to its files."""

from pathlib import Path


def many_files(count: int) -> dict[str, str]:
    """A chunk a file."""
    return {f"ship_{n}.py": f"def sail_{n}(wind):\n    return wind * {n}\n" for n in range(count)}


def spoil(path: Path) -> None:
    """No database any more, whatever SQLite had put beside it."""
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
