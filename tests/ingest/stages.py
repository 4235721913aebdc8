"""Places inside a run at which a test can make something happen: a cancel, a failure, a death."""

import functools
from collections.abc import Callable
from typing import Any

from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
from apps.index.mapped.part_writer import PartWriter
from apps.index.parsing import Chunker
from apps.ingest.runs import batches, pipeline, sweep
from apps.ingest.runs.generation import Generation
from apps.ingest.runs.writer import Writer


def places() -> dict[str, tuple[Any, str]]:
    """Stage → the function that does it."""
    return {
        "discovery": (pipeline, "discover"),
        "reading": (batches, "read_content"),
        "chunking": (Chunker, "begin"),
        "rows": (Generation, "add_files"),
        "embedding": (type(get_embedder(DEFAULT_MODEL)), "embed_documents"),
        "handing over": (Writer, "put"),
        "storing": (PartWriter, "add"),
        "parts": (PartWriter, "finish"),
        "publishing": (Generation, "publish"),
        "deleting dead rows": (sweep, "sweep_root"),
    }


# All but "storing" happen in the thread of the run. Dead rows are deleted at its beginning, too:
# the calls after publishing are the third and the fourth.
STAGES = (
    "discovery",
    "reading",
    "chunking",
    "rows",
    "embedding",
    "handing over",
    "storing",
    "parts",
    "publishing",
    "deleting dead rows",
)


def hook(
    stage: str, action: Callable[[], None], patch: Callable[[Any, str, Any], None] = setattr
) -> None:
    """Call `action` before and after `stage` does its work: `action` itself counts its calls."""
    owner, name = places()[stage]
    real = getattr(owner, name)

    @functools.wraps(real)
    def hooked(*args: Any, **options: Any) -> Any:
        action()
        result = real(*args, **options)
        action()
        return result

    patch(owner, name, hooked)


class Nth:
    """An action that happens at its n-th call only; 1 is before the stage, 2 is after it."""

    def __init__(self, n: int, action: Callable[[], None]) -> None:
        self.left = n
        self.action = action
        self.happened = False

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.happened = True
            self.action()
