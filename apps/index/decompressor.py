"""The decompressor of frames of zstd."""

import threading

import zstandard

_own = threading.local()


def decompressor() -> zstandard.ZstdDecompressor:
    """Return that of this thread: to make one takes ten times as long as to read a frame."""
    made: zstandard.ZstdDecompressor | None = getattr(_own, "decompressor", None)
    if made is None:
        made = _own.decompressor = zstandard.ZstdDecompressor()
    return made
