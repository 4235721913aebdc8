"""Write the files of the embedder: int8 weights, the vocabulary and the model card."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.model import Parameters, softplus
from training.vocabulary import Vocabulary

CARD = Path(__file__).parent / "card.md"


@dataclass(frozen=True)
class Facts:
    """The facts of a training run in the model card."""

    model: str  # its id
    packages: int  # trained on
    pairs: int  # trained on
    figures: str  # the line of `evaluate.judge`


def export(parameters: Parameters, vocabulary: Vocabulary, folder: Path, facts: Facts) -> None:
    """Write weights.npz, vocabulary.txt and README.md. Vectors are quantised to int8 by row."""
    folder.mkdir(parents=True, exist_ok=True)
    vectors = parameters.vectors.astype(np.float32)
    scale = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-8)) / np.float32(127)
    np.savez_compressed(
        folder / "weights.npz",
        vectors=np.round(vectors / scale[:, None]).astype(np.int8),
        scale=scale.astype(np.float32),
        query_weight=softplus(parameters.question_weight).astype(np.float32),
        text_weight=softplus(parameters.text_weight).astype(np.float32),
        field_scale=softplus(parameters.field_scale).astype(np.float32),
    )
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary.words) + "\n", encoding="utf-8")
    card = CARD.read_text(encoding="utf-8")
    values = {
        "model": facts.model,
        "rows": f"{len(vectors):,}",
        "dimension": str(vectors.shape[1]),
        "words": f"{len(vocabulary.words):,}",
        "buckets": f"{vocabulary.buckets:,}",
        "packages": f"{facts.packages:,}",
        "pairs": f"{facts.pairs:,}",
        "figures": facts.figures,
    }
    (folder / "README.md").write_text(card.format(**values), encoding="utf-8")
