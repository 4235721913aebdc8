"""The built-in embedder computes the vectors that its model card defines."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from apps.embedding import static
from apps.embedding.catalogue import DEFAULT_MODEL, get_embedder
from apps.embedding.types import EmbeddingText, Vectors
from apps.embedding.words import RunCache, Runs, stems
from tests.embedding import static_reference

TEXTS: dict[str, list[Any]] = json.loads((Path(__file__).parent / "static_texts.json").read_text())

embedder = get_embedder(DEFAULT_MODEL)


def one(body: str, **fields: str) -> Vectors:
    return embedder.embed_documents([EmbeddingText(body, **fields)])[0]


@pytest.mark.parametrize("case", TEXTS["documents"], ids=lambda case: case["about"])
def test_a_document_has_the_vector_of_the_reference(case: dict[str, Any]) -> None:
    body, path, symbol, signature = case["fields"]
    vector = one(body, path=path, symbol=symbol, signature=signature)
    assert vector == pytest.approx(static_reference.document(case["fields"]), abs=1e-5)


@pytest.mark.parametrize("text", TEXTS["queries"])
def test_a_query_has_the_vector_of_the_reference(text: str) -> None:
    assert embedder.embed_query(text) == pytest.approx(static_reference.query(text), abs=1e-5)


def test_vectors_have_unit_length_or_are_zero_without_words() -> None:
    assert np.linalg.norm(one("def f(): return 1")) == pytest.approx(1)
    assert not one("{ } ();").any()
    assert not embedder.embed_query("").any()


def test_a_vector_does_not_depend_on_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "BATCH_SIZE", 4)
    texts = [EmbeddingText(*case["fields"]) for case in TEXTS["documents"]]
    batch = embedder.embed_documents(texts)
    assert batch.shape == (len(texts), 256)
    assert batch.dtype == np.float32
    alone = [embedder.embed_documents([text])[0] for text in reversed(texts)]
    assert np.array_equal(batch, alone[::-1])


def test_no_texts_give_no_rows() -> None:
    assert embedder.embed_documents([]).shape == (0, 256)


def test_threads_get_the_same_vectors() -> None:
    texts = [EmbeddingText(f"class Name{number}Reader: pass  # {number}") for number in range(200)]
    alone = embedder.embed_documents(texts)
    found: list[Vectors] = []
    threads = [
        threading.Thread(target=lambda: found.append(embedder.embed_documents(texts)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(vectors, alone) for vectors in found)


def test_text_after_thousands_of_words_still_counts() -> None:
    long = "total amount row\n" * 5_000
    assert not np.array_equal(one(long), one(long + "kerberos"))


def test_a_query_is_nearest_to_the_code_that_answers_it() -> None:
    texts = [
        EmbeddingText("def login(user, password): return session_token(user)", "auth/login.py"),
        EmbeddingText("def render(chart): draw_axes(chart)", "plot/axes.py"),
        EmbeddingText("SELECT amount FROM invoices", "billing/report.sql"),
    ]
    scores = embedder.embed_documents(texts) @ embedder.embed_query("how are passwords checked?")
    assert scores.argmax() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("parseHTTPResponse_v2", ["pars", "http", "respons", "v", "2"]),
        ("running telling sizes studies", ["run", "tell", "siz", "study"]),
        ("class status uses bus", ["class", "status", "use", "bus"]),
        ("SCREAMING_CASE __dunder__", ["scream", "case", "dunder"]),
        ("x" * 30, ["x" * 24]),
        ("日本語", []),
    ],
)
def test_identifiers_are_split_into_stems(text: str, expected: list[str]) -> None:
    assert list(stems(text)) == expected


@pytest.mark.parametrize("character", [r"\w", "[A-Za-z0-9\u0130\u212a]", "[a-c]"])
def test_runs_are_the_matches_of_the_pattern(character: str) -> None:
    find = Runs(character)
    everything = "".join(f"{chr(code)}a{chr(code)} " for code in range(128))
    for text in (everything, f"{everything} Größe 300\u212a \u0130x \ud800", "abc", " ", ""):
        assert find(text) == re.findall(f"{character}+", text)


def test_the_cache_of_runs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunCache, "LIMIT", 10)
    cache = RunCache(stems)
    for number in range(1_000):
        assert cache[f"word{number}"] == ("word", str(number))
    assert len(cache) <= 10
