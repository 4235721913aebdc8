"""Quality and speed of the built-in embedder: `python -m benchmarks.docstrings`.

The set is made of installed packages that the weights were not trained on. A query is the first
sentence of a docstring without the name of the function. The relevant text is that function without
its docstring, among all functions of these packages. For comparison: plain BM25, the mix of both
scores, the mix for queries with the name, and the words and ranking of codeinfo. Exits 1 if a
figure is below its floor.
"""

import ast
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from apps.embedding.static import MODEL_ID, StaticCodeEmbedder
from apps.embedding.types import EmbeddingText
from benchmarks import product
from benchmarks.bm25 import Index

# All of training/never_train_on.txt that the development requirements install.
NEVER_TRAINED_ON = (
    "aiohttp", "click", "flask", "httpcore", "httpx", "jinja2", "marshmallow", "requests", "rich",
    "starlette", "urllib3", "werkzeug",
)  # fmt: skip
POOL, QUERIES = 4_000, 1_000
# The weight of the vectors in the mix, chosen on the development packages of `training`.
VECTORS = 0.8
FLOORS = {"MRR@10": 0.56, "R@10": 0.78, "chunks/s": 1_000.0}

T = TypeVar("T")
Search = Callable[[str], NDArray[np.floating]]
"""A score for every function, given a question."""


@dataclass(frozen=True)
class Function:
    """A function and its queries; both are "" if the docstring is not a useful query."""

    text: EmbeddingText  # without the docstring
    question: str  # without the name of the function
    named: str  # with its name


def functions() -> list[Function]:
    site = Path(np.__file__).parent.parent
    files = (file for name in NEVER_TRAINED_ON for file in sorted((site / name).rglob("*.py")))
    return [
        function
        for file in files
        for function in _functions(file.read_text("utf-8"), file.relative_to(site).as_posix())
    ]


def _sample(items: list[T], most: int) -> list[T]:
    """At most `most` items, chosen at random with a fixed seed."""
    return random.Random(0).sample(items, most) if len(items) > most else items


def _functions(source: str, path: str) -> Iterator[Function]:
    lines = source.splitlines()
    for symbol, node in _definitions(ast.parse(source), ""):
        body = _without_docstring(lines, node)
        if len(node.body) > 1 or not ast.get_docstring(node):
            signature = "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1])
            yield Function(EmbeddingText(body, path, symbol, signature), *_questions(node))


Definition = ast.FunctionDef | ast.AsyncFunctionDef


def _definitions(node: ast.AST, above: str) -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition | ast.ClassDef):
            symbol = f"{above}.{child.name}".removeprefix(".")
            if isinstance(child, Definition):
                yield symbol, child
            yield from _definitions(child, symbol)


def _without_docstring(lines: list[str], node: Definition) -> str:
    body = lines[node.lineno - 1 : node.end_lineno]
    if ast.get_docstring(node):
        docstring = node.body[0]
        first = docstring.lineno - node.lineno
        del body[first : (docstring.end_lineno or 0) - node.lineno + 1]
    return "\n".join(body)


def _questions(node: Definition) -> tuple[str, str]:
    """The first sentence of the docstring, without and with the name of the function; "" twice if
    it is too short."""
    paragraph = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?])\s", paragraph)[0].replace("`", "")
    nameless = re.sub(rf"\b{re.escape(node.name)}\b(\(\))?", "", sentence)
    return (nameless, sentence) if len(nameless.split()) >= 4 else ("", "")


def static(texts: list[EmbeddingText]) -> Search:
    embedder = StaticCodeEmbedder()
    vectors = embedder.embed_documents(texts)
    return lambda question: vectors @ embedder.embed_query(question)


def bm25(texts: list[EmbeddingText]) -> Search:
    return Index([f"{text.path} {text.symbol} {text.body}" for text in texts]).scores


def mix(heavy: Search, light: Search, weight: float) -> Search:
    """The weighted sum of the z-scores of both searches."""

    def standard(scores: NDArray[np.floating]) -> NDArray[np.floating]:
        return (scores - scores.mean()) / (scores.std() + 1e-9)

    return lambda question: (
        weight * standard(heavy(question)) + (1 - weight) * standard(light(question))
    )


def ranking(search: Search, queries: list[tuple[str, int]]) -> tuple[float, float]:
    """MRR@10 and recall@10. Ties count against the relevant text."""
    ranks = []
    for question, answer in queries:
        scores = search(question)
        ranks.append(int((scores >= scores[answer]).sum()))
    found = [rank for rank in ranks if rank <= 10]
    return sum(1 / rank for rank in found) / len(ranks), len(found) / len(ranks)


def speed(texts: list[EmbeddingText]) -> float:
    """Chunks of about 1,400 characters embedded in a second, on one thread, best of three."""
    whole = "\n".join(text.body for text in texts)
    chunks = [
        EmbeddingText(whole[start : start + 1_400], "src/a.py", "A.b", "def b(self):")
        for start in range(0, min(len(whole), 3_000_000), 1_400)
    ]
    embedder = StaticCodeEmbedder()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        embedder.embed_documents(chunks)
        times.append(time.perf_counter() - start)
    return len(chunks) / min(times)


def questions(pool: list[Function]) -> list[tuple[Function, int]]:
    """Functions with a question that no other function has, with their index in the pool."""
    repeats = Counter(function.question for function in pool)
    queries = [
        (function, place)
        for place, function in enumerate(pool)
        if function.question and repeats[function.question] == 1
    ]
    return _sample(queries, QUERIES)


def table(pool: list[Function]) -> dict[str, float]:
    """Print the figures of each system. Return those of the mix, which have floors."""
    from benchmarks.ranked import Words, ranked  # noqa: PLC0415 - after the project is set up

    texts = [function.text for function in pool]
    queries = [(function.question, place) for function, place in questions(pool)]
    named = [(function.named, place) for function, place in questions(pool)]
    bodies = [replace(text, path="", symbol="", signature="") for text in texts]
    plain, vectors, words = bm25(texts), static(texts), Words(texts)
    both = f"both, mixed by score, {VECTORS} vectors"
    mixed = mix(vectors, plain, VECTORS)
    systems = {
        "BM25, split and stemmed, path and symbol": (plain, queries),
        "the product's words": (words.scores, queries),
        f"{MODEL_ID}, body only": (static(bodies), queries),
        MODEL_ID: (vectors, queries),
        both: (mixed, queries),
        "the same, asked with the name": (mixed, named),
        "as the product ranks": (ranked(words, vectors), queries),
    }
    print(f"{len(queries)} docstrings asked of {len(texts)} functions\n")
    print("| system | MRR@10 | R@10 |\n| --- | --- | --- |")
    found = {name: ranking(*each) for name, each in systems.items()}
    for name, (reciprocal, recall) in found.items():
        print(f"| {name} | {reciprocal:.3f} | {recall:.3f} |")
    return dict(zip(("MRR@10", "R@10"), found[both], strict=True))


def main() -> int:
    pool = _sample(functions(), POOL)
    with TemporaryDirectory(prefix="codeinfo-benchmark-") as folder:
        product.set_up(Path(folder), [])
        figures = table(pool)
    figures["chunks/s"] = speed([function.text for function in pool])
    print(f"\n{figures['chunks/s']:,.0f} chunks/s on one thread")
    low = [f"{name} is below {floor}" for name, floor in FLOORS.items() if figures[name] < floor]
    print("\n".join(low), file=sys.stderr)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
