"""How a chunk is kept as a Chroma record, and what a collection says of itself."""

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
    """What a collection says of itself: to codeinfo whose it is, and all of it to people who look
    into Chroma."""
    return {
        "embedder": model.partition(":")[0] if ":" in model else "builtin",
        "model": model,
        "dimension": dimension,
        "space": SPACE,
        "root": str(root_id),
        **(origin._asdict() if origin else {}),
    }


def origin_in(about: Mapping[str, Any]) -> Origin | None:
    """Whose a collection is by what it says of itself; None where it does not say."""
    values = [about.get(field) for field in Origin._fields]
    return Origin(*map(str, values)) if all(isinstance(each, str) for each in values) else None


def unit_rows(vectors: Vectors) -> tuple[Vectors, Any]:
    """The rows at unit length, and which of them could be: zero and non-finite ones cannot."""
    # float64: the squares of large float32 numbers would not fit.
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    good = np.isfinite(lengths) & (lengths > 0)
    units = (wide / np.where(good, lengths, 1)[:, None]).astype(np.float32)
    return units, good


def packed(record: VectorRecord) -> dict[str, Any]:
    filtered = {key: record.metadata[key] for key in _FILTERED if key in record.metadata}
    return filtered | {"record": json.dumps([record.text, record.metadata], ensure_ascii=False)}


def match(vector_id: str, packed: Mapping[str, Any], distance: float | None) -> StoredMatch:
    text, metadata = json.loads(packed["record"])
    finite = distance is not None and math.isfinite(distance)
    return StoredMatch(vector_id, text, metadata, distance if finite else None)
