"""What embedders take and give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class EmbeddingText:
    """The text of one chunk by fields: an embedder may weigh them, or join them under a header."""

    body: str
    path: str = ""
    symbol: str = ""
    signature: str = ""

    def joined(self) -> str:
        """The body under a header of path and symbol, for embedders that take one text."""
        header = " ".join(part for part in (self.path, self.symbol) if part)
        return f"{header}\n{self.body}" if header else self.body


class Embedder(Protocol):
    """Turns texts into vectors. Vectors may have any length; the store normalises them.

    Errors: Unavailable(code EMBED_MODEL_MISSING) where the model cannot be had,
    Unavailable(code EMBEDDER_UNAVAILABLE) where its server fails.
    """

    @property
    def id(self) -> str:
        """The full model id: that of the built-in embedder, `openai:<id>` or `lmstudio:<id>`."""

    @property
    def max_tokens(self) -> int | None:
        """Longest input in tokens; None where there is no limit."""

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        """One row per text, in order, shape (len(texts), dimension)."""

    def embed_query(self, text: str) -> Vectors:
        """One vector, shape (dimension,)."""

    def close(self) -> None:
        """Abort what is under way, from any thread; the embedder is of no use afterwards."""


@dataclass(frozen=True)
class EmbeddingModel:
    """One row of `GET /ingest/models`."""

    id: str
    display_name: str
    context_length: int | None = None
    format: str | None = None
    size: int | None = None
    filename: str | None = None
