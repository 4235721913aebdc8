"""Reads parts of version 6 as those of the present one, until their repositories are ingested
again. They are not merged: their identifiers are among their words."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from apps.index import spans
from apps.index.mapped import framed_rows
from apps.index.mapped.definitions import AFTER_NAME, SEVERAL
from apps.index.mapped.files import Array
from apps.index.mapped.words import Hashes


def present(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a part of version 6 as the present version has them. A line of a definition
    stays as it is (`Definitions`)."""
    hashes = Hashes.of(arrays["words.hashes"] >> np.uint64(16))
    words: dict[str, Array] = {"high": hashes.high, "low": hashes.low}
    words |= {field: arrays[f"words.{field}"] for field in ("bounds", "rows", "times")}
    chunks, texts = arrays["columns.ends"], arrays["columns.texts"]
    has_names = np.diff(chunks.astype(np.int64)) > 0
    declared = np.insert(texts, chunks[1:][has_names].astype(np.intp), AFTER_NAME[0])
    ends = arrays["definitions.name_ends"].astype(np.int64)
    frame = framed_rows.compressed(arrays["columns.file_texts"].tobytes())
    numbers, places = _numbers(arrays["definitions.name_bounds"], arrays["definitions.places"])
    begins, sizes = spans.columns_of(arrays["columns.spans"])
    return {
        **arrays,
        "columns.begins": begins,
        "columns.sizes": sizes,
        **{
            f"{group}.{field}": words[field]
            for group in ("words", "identifiers")
            for field in words
        },
        "definitions.names": np.concatenate([declared, arrays["definitions.names"]]),
        "definitions.name_starts": (ends[:-1] + len(declared)).astype(np.uint32),
        "definitions.name_sizes": np.diff(ends).astype(np.uint16),
        "definitions.numbers": numbers,
        "definitions.places": places,
        "columns.ends": chunks + np.append(0, np.cumsum(has_names)).astype(np.uint32),
        "columns.file_texts": np.frombuffer(frame, np.uint8),
    }


def _numbers(bounds: Array, places: Array) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """`Definitions.numbers` and `Definitions.places`."""
    counts = np.diff(bounds.astype(np.int64))
    several = counts > 1
    # Before the numbers of each such name, their count.
    starts = bounds[:-1][several].astype(np.intp)
    with_counts = np.insert(places, starts, counts[several].astype(np.uint32))
    numbers = places[bounds[:-1]]
    numbers[several] = SEVERAL | (starts + np.arange(len(starts))).astype(np.uint32)
    return numbers, with_counts
