"""How much each signal counts. docs/retrieval.md has what each brings, measured one by one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Weights:
    """Shares are of 1; the rest are standard deviations of the candidates' mixed scores, so that
    they hold for any embedder and any size of index."""

    # Share of meaning in the mix; words have the rest. A sentence is understood better than spelt.
    meaning: float = 0.75
    # The same where the question is a bare name: then its spelling is what is asked.
    meaning_of_name: float = 0.7
    # A passage that declares the very name asked for, rather than using it.
    definition: float = 1.0
    # A passage whose declared name is made of the question's words, and they of it.
    names: float = 0.5
    # Temperature of adding up a file's passages: near 0 only the best counts, far up their number.
    pool: float = 0.5
    # A file whose name is made of the question's words: people name files by what is in them.
    file_name: float = 2.5
    # A file that bears the very name asked for.
    file_of_name: float = 1.0
    # Held back unless the question asks for such files: they use or describe what others define.
    test: float = 3.0
    example: float = 1.0
    prose: float = 2.0
    data: float = 2.0
    legacy: float = 1.0
    # A file that declares what its sibling defines (a header beside its source, a type stub).
    declaration: float = 0.5
    # An index file that declares nothing itself: it only passes names on.
    reexport: float = 0.5
    # `v1/` where there is `v2/` beside it.
    superseded: float = 2.5
    # Each further passage of a file: the first hits should show different files.
    again: float = 4.0
