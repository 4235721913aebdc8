"""Runs in the environment that has `semble`, not in the product's: its words and ranking, alone.

Reads one JSON object a line: `{folder}` to index, or `{question, k}` to ask of the folder that was
indexed last. Answers each with a line: `{chunks}`, or `{places}` with `[path, start, end, chars]`.
Its vectors come from a downloaded model, so they count for nothing here: `alpha` is 0.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from semble.index.create import create_index_from_path
from semble.search import search


class NoModel:
    """In the place of the model. Every text has the same vector."""

    dim = 2

    def encode(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        return np.ones((len(texts), self.dim), dtype=np.float32)


def main() -> None:
    words = vectors = chunks = None
    for line in sys.stdin:
        request = json.loads(line)
        if "folder" in request:
            root = Path(request["folder"]).resolve()
            words, vectors, chunks, _ = create_index_from_path(root, NoModel(), display_root=root)
            answer: dict[str, object] = {"chunks": len(chunks)}
        else:
            question, k = request["question"], request["k"]
            found = search(question, NoModel(), vectors, words, chunks, k, alpha=0.0)
            places = [
                [c.file_path, c.start_line, c.end_line, len(c.content)]
                for c in (result.chunk for result in found)
            ]
            answer = {"places": places}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
