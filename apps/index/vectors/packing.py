"""The metadata of collections, and vectors of unit length."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np

from apps.embedding.types import Vectors
from apps.index.types import Origin
from apps.index.vectors.handles import SPACE


def description(
    root_id: UUID, model: str, dimension: int, origin: Origin | None = None
) -> dict[str, Any]:
    """Return the metadata of a collection. codeinfo reads the model and the origin; the rest is for
    people who inspect Chroma."""
    return {
        "embedder": model.partition(":")[0] if ":" in model else "builtin",
        "model": model,
        "dimension": dimension,
        "space": SPACE,
        "root": str(root_id),
        **(origin._asdict() if origin else {}),
    }


def origin_in(about: Mapping[str, Any]) -> Origin | None:
    """Return the origin in a collection's metadata; None if it is incomplete."""
    values = [about.get(field) for field in Origin._fields]
    return Origin(*map(str, values)) if all(isinstance(each, str) for each in values) else None


def unit_rows(vectors: Vectors) -> tuple[Vectors, Any]:
    """Scale rows to unit length.

    vectors: float32 (n, d)

    Return float32 (n, d) and bool (n,), which is false for rows that are zero or not finite.
    """
    # float64, as the squares of large float32 numbers overflow.
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    good = np.isfinite(lengths) & (lengths > 0)
    units = (wide / np.where(good, lengths, 1)[:, None]).astype(np.float32)
    return units, good
