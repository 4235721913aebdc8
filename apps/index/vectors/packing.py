"""Converts chunks to Chroma records and back, and the metadata of collections."""

import json
import math
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import numpy as np

from apps.embedding.types import Vectors
from apps.index.types import Origin, StoredMatch, VectorRecord
from apps.index.vectors.collections import SPACE

_FILTERED = ("runId", "sourceFile")


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


def packed(record: VectorRecord) -> dict[str, Any]:
    """Return the Chroma metadata of a record: keys to filter by, and the record as JSON."""
    filtered = {key: record.metadata[key] for key in _FILTERED if key in record.metadata}
    return filtered | {"record": json.dumps([record.text, record.metadata], ensure_ascii=False)}


def match(vector_id: str, packed: Mapping[str, Any], distance: float | None) -> StoredMatch:
    """Return the record that `packed` stored. A distance that is not finite becomes None. Raises
    ValueError if `packed` cannot have been stored."""
    try:
        text, metadata = json.loads(packed["record"])
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"not the metadata of a record: {error!r}") from error
    if not (isinstance(text, str) and isinstance(metadata, dict)):
        raise ValueError("not the text and the metadata of a record")
    finite = distance is not None and math.isfinite(distance)
    return StoredMatch(vector_id, text, metadata, distance if finite else None)
