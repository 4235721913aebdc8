"""The version of the chunks of a root, `Root.chunker_version`."""

from hashlib import sha256

from apps.core.config import config
from apps.index.models import Root

# Increment after a change of the chunker or of what is stored of a chunk: every root is then
# ingested again, and answers as it is meanwhile.
CHUNKER_VERSION = 2
# Increment after a change of the rules on file contents: the next run reads unchanged files again,
# and skips those that are no longer eligible.
ELIGIBILITY_VERSION = 1


def chunker_version() -> str:
    """Return the value of `Root.chunker_version` for chunks made now."""
    included = " ".join(sorted(config().ingest_include))
    return f"{CHUNKER_VERSION}/{sha256(included.encode()).hexdigest()[:8]}/{ELIGIBILITY_VERSION}"


def makes_the_same_chunks(root: Root) -> bool:
    """Whether the current chunker would make the same chunks as those of the root's index."""
    return _cut(root.chunker_version) == _cut(chunker_version())


def is_outdated(root: Root) -> bool:
    """Whether an earlier version of codeinfo made the chunks of a root."""
    number = root.chunker_version.partition("/")[0]
    return number.isdecimal() and int(number) < CHUNKER_VERSION


def _cut(version: str) -> list[str]:
    """Return the part of a chunker version on which chunks depend."""
    return version.split("/")[:2]
