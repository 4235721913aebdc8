"""From the bytes of a file to chunks: whole lines, along the syntax tree where there is one."""

from apps.ingest.chunking.chunker import Chunker
from apps.ingest.chunking.text import decode, lines_of

__all__ = ["Chunker", "decode", "lines_of"]
