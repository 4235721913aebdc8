"""The weights of the signals. docs/retrieval.md has the measured gain of each."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """Semantic weights are shares, 0 to 1. The others are in standard deviations of the candidates'
    scores, so they hold for any embedder and any size of index."""

    # Share of the cosine similarity in the mixed score; BM25 has the rest.
    semantic_weight: float = 0.75
    # The same for a query of one identifier: then the exact words matter more.
    semantic_weight_of_name: float = 0.7
    # The passage declares an identifier of the query.
    definition: float = 1.0
    # The passage declares a name that agrees with the query's words.
    names: float = 0.5
    # Temperature of pooling a file's passages: near 0 only the best counts, far above their number.
    pool: float = 0.5
    # The file's name agrees with the query's words: people name files by their content.
    file_name: float = 2.5
    # The file's name is an identifier of the query.
    file_of_name: float = 1.0
    # The file is in a repository that the query names.
    named_repository: float = 3.0
    # Penalties by kind, unless the query asks for that kind: these files use or describe what other
    # files define.
    test: float = 3.0
    example: float = 1.0
    prose: float = 2.0
    data: float = 2.0
    legacy: float = 1.0
    # Penalty of a file that declares what its sibling defines (a header, a type stub).
    declaration: float = 0.5
    # Penalty of an index file that declares nothing itself.
    reexport: float = 0.5
    # Penalty of `v1/` beside `v2/`.
    superseded: float = 2.5
    # Penalty of the second passage of a file, so that the first results show different files.
    repeat_penalty: float = 4.0


WEIGHTS = Weights()
