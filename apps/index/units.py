"""Vectors of unit length."""

from typing import Any

import numpy as np

from apps.embedding.types import Vectors


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
