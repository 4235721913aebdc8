"""Chunks as a store is given them."""

from hashlib import sha256

from apps.code.values import Chunk
from apps.index.types import ChunkRecord


def record(
    path: str, text: str, number: int = 0, run: str = "r", names: str = "", symbol: str = ""
) -> ChunkRecord:
    """A chunk whose file has a hundred characters before it for each earlier one."""
    return ChunkRecord(
        id=f"{run}:{path}:{number}",
        source_file=f"{run}/{path}",
        run_id=run,
        path=path,
        language="python" if path.endswith(".py") else "markdown",
        sha256=sha256(path.encode()).hexdigest(),
        index=number,
        chunk=Chunk(
            text,
            10 * number + 1,
            10 * number + 9,
            symbol=symbol,
            names=tuple(names.split()),
            signature=f"def {names}" if names else "",
            offset=100 * number,
        ),
    )
