"""The version of the chunks of a root, `Root.chunker_version`."""

from hashlib import sha256

from apps.core.config import config
from apps.index.models import Root

# Increment after a change of the chunker, of what is stored of a chunk, or of the rules on file
# contents: the next run of each root then reads all its files again.
CHUNKER_VERSION = 10


def chunker_version() -> str:
    """Return the value of `Root.chunker_version` for chunks made now."""
    included = " ".join(sorted(config().ingest_include))
    return f"{CHUNKER_VERSION}/{sha256(included.encode()).hexdigest()[:8]}"


def makes_the_same_chunks(root: Root) -> bool:
    """Whether the current chunker would make the same chunks as those of the root's index."""
    return root.chunker_version == chunker_version()
