"""Embedding with OpenAI-compatible servers, and errors for their failures."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from apps.core.errors import InvalidInput, Unavailable
from apps.embedding import retry
from apps.embedding.catalogue import get_embedder
from apps.embedding.types import Embedder, EmbeddingText
from tests.stand_ins.embeddings_server import (
    EmbeddingsServer,
    Reply,
    SmallServer,
    answer_to,
    vector_of,
)

pytestmark = [pytest.mark.usefixtures("wire_ends"), pytest.mark.door]
Turn = Callable[..., None]


@pytest.fixture
def server(configure: Turn) -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        configure(embedding_base_url=running.url, embedding_api_key="sesame")
        yield running


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, written down instead of waited for."""
    taken: list[float] = []

    async def pause(seconds: float) -> None:
        taken.append(seconds)

    monkeypatch.setattr(retry.asyncio, "sleep", pause)
    return taken


def model() -> Embedder:
    return get_embedder("openai:text-embedding-small")


def texts(count: int) -> list[EmbeddingText]:
    return [EmbeddingText(f"body {'x' * number}", path="a.py") for number in range(count)]


def test_each_text_gets_its_own_vector_across_batches(
    server: EmbeddingsServer, configure: Turn
) -> None:
    configure(embedding_batch=3)
    vectors = model().embed_documents(texts(8))
    assert vectors.tolist() == [vector_of(text.joined()) for text in texts(8)]
    assert vectors.dtype == np.float32
    assert sorted(len(batch) for batch in server.texts()) == [2, 3, 3]


def test_the_server_reads_path_and_symbol_before_the_body(server: EmbeddingsServer) -> None:
    model().embed_documents([EmbeddingText("return 1", "src/a.py", "A.one", "def one(self)")])
    assert server.texts() == [["src/a.py A.one\nreturn 1"]]


def test_a_query_is_sent_unchanged(server: EmbeddingsServer) -> None:
    assert model().embed_query("where is x?").tolist() == vector_of("where is x?")
    request = server.requests[0]
    assert request.body == {"model": "text-embedding-small", "input": ["where is x?"]}
    assert request.headers["Authorization"] == "Bearer sesame"


def test_four_requests_are_sent_at_a_time(server: EmbeddingsServer, configure: Turn) -> None:
    configure(embedding_batch=1)
    # Nobody is answered before four have come: fewer at a time would break the barrier.
    barrier = threading.Barrier(4, timeout=30)
    embedder = model()
    assert embedder.max_tokens
    server.before_answer = barrier.wait
    embedder.embed_documents(texts(8))
    assert server.most_in_flight == 4


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_temporary_failure_is_retried_with_backoff(
    server: EmbeddingsServer, pauses: list[float], status: int
) -> None:
    embedder = model()
    assert embedder.max_tokens
    server.script += [Reply(status, {"error": {"message": "busy"}})] * 3
    assert len(embedder.embed_documents(texts(1))) == 1
    assert len(server.texts()) == 4
    assert pauses == sorted(pauses)
    assert len(pauses) == 3
    assert pauses[0] >= 0.3


def test_the_number_of_tries_is_limited(server: EmbeddingsServer, pauses: list[float]) -> None:
    embedder = model()
    assert embedder.max_tokens
    server.script += [Reply(503, {"error": {"message": "model is loading"}})] * 20
    with pytest.raises(Unavailable, match="503: model is loading") as caught:
        embedder.embed_documents(texts(1))
    assert (caught.value.code, caught.value.retryable) == ("EMBEDDER_UNAVAILABLE", True)
    assert len(server.texts()) == 5


def test_retry_after_is_respected(server: EmbeddingsServer, pauses: list[float]) -> None:
    server.script.append(Reply(429, {}, {"Retry-After": "7"}))
    model().embed_query("x")
    assert pauses == [7.0]


def test_a_long_retry_after_is_not_waited_for(
    server: EmbeddingsServer, pauses: list[float]
) -> None:
    server.script.append(Reply(429, {}, {"Retry-After": "3600"}))
    with pytest.raises(Unavailable, match="429"):
        model().embed_query("x")
    assert pauses == []


def test_retry_after_may_be_a_date_or_invalid() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < (retry.seconds(in_a_minute) or 0) <= 60
    assert retry.seconds("Wed, 01 Jan 2020 00:00:00 GMT") == 0
    assert retry.seconds("soon") is None
    assert retry.seconds(None) is None


WRONG_ANSWERS: dict[str, Any] = {
    "no JSON": b"<html>busy</html>",
    "no list": {"data": None},
    "a list": [1, 2],
    "one too many": answer_to(["a", "b", "c"]),
    "one twice": {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}]},
    "unequal lengths": {
        "data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]
    },
    "empty vectors": {"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]},
    "not a number": b'{"data":[{"index":0,"embedding":[NaN]},{"index":1,"embedding":[1]}]}',
    "null": {"data": [{"index": 0, "embedding": [None]}, {"index": 1, "embedding": [1.0]}]},
    "too large a number": b'{"data":[{"index":0,"embedding":[1e99]},{"index":1,"embedding":[1]}]}',
    "words": {"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]},
}


@pytest.mark.parametrize("answer", WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_a_reply_without_valid_vectors_is_refused(server: EmbeddingsServer, answer: Any) -> None:
    embedder = model()
    assert embedder.max_tokens
    server.script.append(Reply(200, answer))
    with pytest.raises(Unavailable) as caught:
        embedder.embed_documents(texts(2))
    assert caught.value.code == "EMBEDDER_UNAVAILABLE"


def test_a_changed_dimension_is_refused(server: EmbeddingsServer) -> None:
    embedder = model()
    embedder.embed_query("first")
    server.script.append(Reply(200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}))
    with pytest.raises(Unavailable, match="2 numbers after 8"):
        embedder.embed_query("second")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_the_variable_and_not_the_key(
    server: EmbeddingsServer, pauses: list[float], status: int
) -> None:
    server.script.append(Reply(status, {"error": {"message": "Incorrect key: sesame"}}))
    with pytest.raises(Unavailable, match="CODEINFO_EMBEDDING_API_KEY") as caught:
        model().embed_query("x")
    assert (caught.value.code, caught.value.retryable) == ("EMBEDDER_UNAVAILABLE", False)
    assert "sesame" not in caught.value.message
    assert pauses == []


MISSING_MODEL = [
    (404, {"error": {"message": 'model "small" not found, try pulling it first'}}),
    (404, {"object": "error", "message": "The model `small` does not exist.", "code": 404}),
    (404, {"error": {"message": "No access", "code": "model_not_found"}}),
    (403, {"error": {"message": "Project has no access", "code": "model_not_found"}}),
    (400, {"error": "Model not loaded"}),
]


@pytest.mark.parametrize(("status", "body"), MISSING_MODEL)
def test_a_model_that_the_server_lacks_has_its_own_code(
    server: EmbeddingsServer, status: int, body: Any
) -> None:
    server.script.append(Reply(status, body))
    with pytest.raises(Unavailable) as caught:
        model().embed_query("x")
    assert caught.value.code == "EMBED_MODEL_MISSING"
    assert caught.value.details == {"modelId": "openai:text-embedding-small"}
    assert not caught.value.retryable


def test_a_wrong_path_is_distinguished_from_a_missing_model(
    server: EmbeddingsServer,
) -> None:
    server.script.append(Reply(404, b"<h1>Not Found</h1>"))
    with pytest.raises(Unavailable, match="usually ends in /v1") as caught:
        model().embed_query("x")
    assert caught.value.code == "EMBEDDER_UNAVAILABLE"


@pytest.mark.fault("An address that leads elsewhere")
def test_a_redirect_is_not_followed(server: EmbeddingsServer) -> None:
    with EmbeddingsServer() as elsewhere:
        server.script.append(Reply(307, {}, {"Location": f"{elsewhere.url}/embeddings"}))
        with pytest.raises(Unavailable, match="redirects are not followed"):
            model().embed_query("x")
        assert elsewhere.requests == []


def test_an_unreachable_server_is_named(configure: Turn, pauses: list[float]) -> None:
    with EmbeddingsServer() as server:
        address = server.url
    configure(embedding_base_url=address)
    with pytest.raises(Unavailable, match=address) as caught:
        model().embed_query("x")
    assert caught.value.retryable


def test_closing_ends_calls_in_flight(server: EmbeddingsServer) -> None:
    embedder = model()
    assert embedder.max_tokens
    received, answer = threading.Event(), threading.Event()

    def hold() -> None:
        received.set()
        answer.wait(30)

    server.before_answer = hold
    with ThreadPoolExecutor() as pool:
        call = pool.submit(embedder.embed_documents, texts(100))
        assert received.wait(30)
        embedder.close()
        with pytest.raises(Unavailable, match="closed"):
            call.result(30)
        # The answer never came: it is only now that the server may give it.
        answer.set()
    with pytest.raises(Unavailable, match="closed"):
        embedder.embed_query("x")


def test_closing_ends_a_retry_pause(
    server: EmbeddingsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = model()
    waiting = threading.Event()
    sleep = retry.asyncio.sleep

    async def pause(seconds: float) -> None:
        waiting.set()
        await sleep(seconds)

    monkeypatch.setattr(retry.asyncio, "sleep", pause)
    server.script.append(Reply(429, {}, {"Retry-After": "59"}))
    with ThreadPoolExecutor() as pool:
        call = pool.submit(embedder.embed_query, "x")
        assert waiting.wait(30)
        embedder.close()
        with pytest.raises(Unavailable, match="closed"):
            call.result(30)


def test_closing_one_embedder_does_not_affect_another(server: EmbeddingsServer) -> None:
    first, second = model(), model()
    first.close()
    assert second.embed_query("x").shape == (8,)


@pytest.mark.parametrize(
    "entry",
    [
        {"max_model_len": 512},
        {"context_length": 512},
        {"max_context_length": 512},
        {"meta": {"n_ctx": 512}},
    ],
)
def test_the_token_limit_is_the_servers_less_the_margin(
    server: EmbeddingsServer, entry: dict[str, Any]
) -> None:
    server.models = [{"id": "text-embedding-small", **entry}]
    assert model().max_tokens == 435


def test_the_default_token_limit_is_the_setting_less_the_margin(
    server: EmbeddingsServer, configure: Turn
) -> None:
    configure(ingest_fallback_tokens=1_000)
    assert model().max_tokens == 850
    server.script.append(Reply(500, {}))
    assert model().max_tokens == 850


def test_a_text_longer_than_the_limit_is_refused(server: EmbeddingsServer) -> None:
    server.models = [{"id": "text-embedding-small", "context_length": 100}]
    with pytest.raises(InvalidInput, match=r"a\.py is longer"):
        model().embed_documents([EmbeddingText("x = 1\n" * 100, "a.py")])
    assert server.texts() == []


def test_a_long_query_is_truncated(server: EmbeddingsServer) -> None:
    server.models = [{"id": "text-embedding-small", "context_length": 100}]
    question = "why does this fail? " * 200
    model().embed_query(question)
    ((sent,),) = server.texts()
    assert question.startswith(sent)
    assert 100 < len(sent) < 400


def test_no_texts_make_no_request(server: EmbeddingsServer) -> None:
    assert model().embed_documents([]).shape[0] == 0
    assert json.dumps(server.texts()) == "[]"


LONG = EmbeddingText("alpha = beta + gamma\n" * 70, path="long.py")


def test_a_batch_above_the_servers_limit_is_halved_and_the_limit_remembered(
    configure: Turn,
) -> None:
    with SmallServer(most=8, longest=9_000) as server:
        configure(embedding_base_url=server.url, embedding_batch=32)
        embedder = model()
        expected = [vector_of(text.joined()) for text in texts(32)]
        assert embedder.embed_documents(texts(32)).tolist() == expected
        assert embedder.cut_texts == 0
        server.requests.clear()
        assert embedder.embed_documents(texts(32)).tolist() == expected
        assert {len(batch) for batch in server.texts()} == {8}


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_text_above_the_servers_context_is_cut_and_the_limit_remembered(
    configure: Turn, status: int
) -> None:
    with SmallServer(most=99, longest=1_000, status=status) as server:
        configure(embedding_base_url=server.url)
        embedder = model()
        some = [*texts(3), LONG, *texts(2)]
        vectors = embedder.embed_documents(some)
        assert vectors[:3].tolist() == [vector_of(text.joined()) for text in texts(3)]
        sent = max(
            (text for batch in server.texts() for text in batch if len(text) <= 1_000), key=len
        )
        assert LONG.joined().startswith(sent)
        assert len(sent) > 600
        assert vectors[3].tolist() == vector_of(sent)
        assert embedder.cut_texts == 1
        server.requests.clear()
        embedder.embed_documents([LONG, *texts(1)])
        assert [len(batch) for batch in server.texts()] == [1, 1], "nothing is refused again"
        assert embedder.cut_texts == 2


def test_a_question_above_the_servers_context_is_cut(configure: Turn) -> None:
    with SmallServer(most=1, longest=1_000) as server:
        configure(embedding_base_url=server.url)
        assert model().embed_query(LONG.body).shape == (8,)


@pytest.mark.parametrize(("others", "most"), [(7, 11), (0, 3)])
def test_a_server_that_refuses_every_text_ends_the_call_and_names_the_setting(
    configure: Turn, others: int, most: int
) -> None:
    with SmallServer(most=99, longest=0) as server:
        configure(embedding_base_url=server.url)
        with pytest.raises(Unavailable, match="INGEST_FALLBACK_TOKENS") as caught:
            model().embed_documents([*texts(others), LONG])
        assert (caught.value.code, caught.value.retryable) == ("EMBEDDER_UNAVAILABLE", False)
        assert len(server.requests) <= most


@pytest.mark.parametrize("index", [{}, {"index": None}])
def test_a_reply_without_indexes_is_in_order(
    server: EmbeddingsServer, index: dict[str, Any]
) -> None:
    embedder = model()
    assert embedder.max_tokens
    data = [{"embedding": vector_of(text.joined()), **index} for text in texts(2)]
    server.script.append(Reply(200, {"data": data}))
    assert embedder.embed_documents(texts(2)).tolist() == [entry["embedding"] for entry in data]


def test_a_list_around_each_vector_is_taken_away(server: EmbeddingsServer) -> None:
    embedder = model()
    assert embedder.max_tokens
    data = [
        {"index": at, "embedding": [vector_of(text.joined())]} for at, text in enumerate(texts(2))
    ]
    server.script.append(Reply(200, {"data": data}))
    assert embedder.embed_documents(texts(2)).tolist() == [entry["embedding"][0] for entry in data]


def test_an_error_under_status_200_is_quoted(server: EmbeddingsServer) -> None:
    embedder = model()
    assert embedder.max_tokens
    server.script.append(Reply(200, {"error": {"message": "The model crashed."}}))
    with pytest.raises(Unavailable, match="answered: The model crashed"):
        embedder.embed_documents(texts(2))


def test_a_batch_that_is_refused_under_status_200_is_halved(server: EmbeddingsServer) -> None:
    embedder = model()
    assert embedder.max_tokens
    server.script.append(Reply(200, {"error": "input is too large to process"}))
    expected = [vector_of(text.joined()) for text in texts(2)]
    assert embedder.embed_documents(texts(2)).tolist() == expected


def test_a_batch_of_which_a_part_is_answered_is_halved(server: EmbeddingsServer) -> None:
    embedder = model()
    assert embedder.max_tokens
    server.script.append(Reply(200, {"data": [{"index": 0, "embedding": vector_of("")}]}))
    expected = [vector_of(text.joined()) for text in texts(2)]
    assert embedder.embed_documents(texts(2)).tolist() == expected
    server.requests.clear()
    embedder.embed_documents(texts(2))
    assert [len(batch) for batch in server.texts()] == [1, 1]


@pytest.mark.parametrize("count", [0, 3])
def test_another_number_of_vectors_names_the_setting(server: EmbeddingsServer, count: int) -> None:
    embedder = model()
    assert embedder.max_tokens
    data = [{"index": at, "embedding": [1.0]} for at in range(count)]
    server.script += [Reply(200, {"data": data})] * 5
    with pytest.raises(Unavailable, match=f"{count} vectors for .*CODEINFO_EMBEDDING_BATCH"):
        embedder.embed_documents(texts(2))


def test_a_batch_that_does_not_fit_into_memory_is_halved(server: EmbeddingsServer) -> None:
    embedder = model()
    assert embedder.max_tokens
    server.script.append(Reply(500, {"detail": "CUDA out of memory"}))
    assert embedder.embed_documents(texts(2)).shape == (2, 8)
