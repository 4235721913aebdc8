"""Types of embedders: input, output and protocol."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# float32 (n, dimension), or (dimension,) for one vector.
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class EmbeddingText:
    """The text of one chunk by fields. An embedder may weight the fields or join them."""

    body: str  # the text of the chunk
    path: str = ""  # of its file, within the repository
    symbol: str = ""  # path of the definition that contains it, and the names that it declares
    signature: str = ""  # of that definition

    def joined(self) -> str:
        """The body after a header line of path and symbol, for embedders that take one text."""
        header = " ".join(part for part in (self.path, self.symbol) if part)
        return f"{header}\n{self.body}" if header else self.body


class Embedder(Protocol):
    """Turns texts into vectors. Vectors may have any length; the store normalises them.

    All methods raise Unavailable EMBED_MODEL_MISSING if the model does not exist, and Unavailable
    EMBEDDER_UNAVAILABLE if its server fails.
    """

    @property
    def id(self) -> str:
        """The full model id: that of the built-in one, `openai:<id>` or `lmstudio:<id>`."""

    @property
    def max_tokens(self) -> int | None:
        """Called before chunks are split to fit. The longest input in tokens; None: no limit."""

    @property
    def cut_texts(self) -> int:
        """Called when a run ends. How many texts were cut so far, because the server took no longer
        ones."""

    def embed_documents(self, texts: Sequence[EmbeddingText]) -> Vectors:
        """Called for each batch of an ingest. Return float32 (len(texts), dimension), in order."""

    def embed_query(self, text: str) -> Vectors:
        """Called for each search. Return float32 (dimension,)."""

    def close(self) -> None:
        """Called from any thread when a run ends or is cancelled. Abort calls in progress; they
        raise Unavailable. The embedder is not used afterwards."""


@dataclass(frozen=True)
class EmbeddingModel:
    """One entry of `GET /ingest/models`. None: unknown."""

    id: str  # the full id
    display_name: str
    context_length: int | None = None  # tokens
    format: str | None = None  # of its file: `npz`, `gguf`, …
    size: int | None = None  # bytes
    filename: str | None = None
