"""Runs in the environment that has `semble`, not in the product's: its words and ranking.

Reads one JSON object a line: `{folder}` to index, or `{question, k}` to ask of the folder that was
indexed last. Answers each with a line: `{chunks}`, or `{places}` with `[path, start, end, chars]`.
Its vectors come from a downloaded model, so they count for nothing here: `alpha` is 0. With
`--vectors` those of codeinfo's embedder are in their place, and semble chooses what they count.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from semble.index.create import create_index_from_path
from semble.search import search

from apps.embedding.static import DIMENSION, StaticCodeEmbedder
from apps.embedding.types import EmbeddingText


class NoModel:
    """In the place of the model. Every text has the same vector."""

    dim = 2

    def encode(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dim), dtype=np.float32)


class OurModel:
    """codeinfo's embedder, which has other weights for questions."""

    dim = DIMENSION

    def __init__(self) -> None:
        self._embedder = StaticCodeEmbedder()
        self.is_asked = False

    def encode(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        if self.is_asked:
            return np.stack([self._embedder.embed_query(text) for text in texts])
        return self._embedder.embed_documents([EmbeddingText(text) for text in texts])


def main() -> None:
    with_ours = sys.argv[1:] == ["--vectors"]
    ours = OurModel()
    model = ours if with_ours else NoModel()
    words = vectors = chunks = None
    for line in sys.stdin:
        request = json.loads(line)
        ours.is_asked = "folder" not in request
        if "folder" in request:
            root = Path(request["folder"]).resolve()
            words, vectors, chunks, _ = create_index_from_path(root, model, display_root=root)
            answer: dict[str, object] = {"chunks": len(chunks)}
        else:
            question, k = request["question"], request["k"]
            alpha = None if with_ours else 0.0
            found = search(question, model, vectors, words, chunks, k, alpha=alpha)
            places = [
                [c.file_path, c.start_line, c.end_line, len(c.content)]
                for c in (result.chunk for result in found)
            ]
            answer = {"places": places}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
