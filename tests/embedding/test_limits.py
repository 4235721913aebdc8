"""Replies of an untrusted embedding server: long, compressed, nested, malformed and slow ones."""

import gzip
import json
import resource
from collections.abc import Callable

import pytest

from apps.core.errors import Unavailable
from apps.embedding import retry, server
from apps.embedding.catalogue import available_models, get_embedder
from apps.embedding.types import EmbeddingText
from apps.embedding.wire import wire
from apps.servers.types import Server
from tests.stand_ins.raw_server import RawStandIn, http

pytestmark = [pytest.mark.usefixtures("wire_ends", "no_pauses"), pytest.mark.door]
Turn = Callable[..., None]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.0)


def vectors(value: str) -> bytes:
    return http(b'{"data": [{"index": 0, "embedding": ' + value.encode() + b"}]}")


def refusal(configure: Turn, answer: RawStandIn) -> Unavailable:
    with answer as running:
        configure(embedding_base_url=running.url)
        with pytest.raises(Unavailable) as raised:
            get_embedder("openai:m").embed_documents([EmbeddingText("body", path="a.py")])
    return raised.value


REPLIES = {
    "open brackets": http(b"[" * 100_000),
    "many levels": vectors("[" * 500 + "1" + "]" * 500),
    "a number of 5,000 digits": vectors("[" + "1" * 5_000 + "]"),
    "a number of 4,000 digits": vectors("[" + "1" * 4_000 + "]"),
    "an infinite number": vectors("[1e999]"),
    "a vector of 100,000 numbers": vectors("[" + "1," * 100_000 + "1]"),
    "an odd charset": http(b"x", 500, "text/plain; charset=zlib"),
    "an odd pause": http(b"x", 500, "text/plain", "Retry-After: Mon, 1 Jan 99999999999 0:0:0 GMT"),
    "an endless pause": http(b"x", 500, "text/plain", "Retry-After: " + "9" * 5_000),
}


@pytest.mark.parametrize("reply", REPLIES)
def test_an_invalid_reply_is_reported(reply: str, configure: Turn) -> None:
    assert refusal(configure, RawStandIn(REPLIES[reply])).code == "EMBEDDER_UNAVAILABLE"


@pytest.mark.fault("The model server fails")
def test_a_reply_beyond_the_size_limit_is_not_read(
    configure: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.core.http.limits.MAX_REPLY_BYTES", 100_000)
    answer = RawStandIn(http(b"["), b" " * 65_536, 16_000)
    error = refusal(configure, answer)
    assert "than 100000 bytes" in error.message
    assert answer.sent < 50_000_000


def test_the_size_limit_depends_on_the_number_of_texts(configure: Turn) -> None:
    answer = RawStandIn(http(b"["), b" " * 65_536, 16_000)
    assert "more than" in refusal(configure, answer).message
    assert answer.sent < 50_000_000


def test_a_compressed_reply_is_refused_before_it_is_unpacked(configure: Turn) -> None:
    bomb = http(gzip.compress(b" " * 300_000_000), 200, "text/plain", "Content-Encoding: gzip")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "compressed" in refusal(configure, RawStandIn(bomb)).message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_slow_reply_times_out(configure: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        server, "FOR_DOCUMENTS", server.CallLimits(server.FOR_QUERY.timeout, 1, 0.5)
    )
    error = refusal(configure, RawStandIn(http(b"["), b" ", 600, drips=0.1))
    assert "did not answer in time" in error.message


def test_cookies_of_a_server_are_not_kept(configure: Turn) -> None:
    with RawStandIn(http(b"x", 500, "text/plain", "Set-Cookie: a=b; Path=/")) as running:
        configure(embedding_base_url=running.url)
        for _ in range(2):
            with pytest.raises(Unavailable):
                get_embedder("openai:m").embed_query("x")
        assert not any(b"cookie" in request.lower() for request in running.requests)
    assert not list(wire().client(Server("openai", "")).cookies.jar)


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"data": [{"id": "m", "n": ' + b"1" * 5_000 + b"}]}", b" " * 9_000_000],
    ids=["nested", "a long number", "long"],
)
@pytest.mark.django_db
def test_an_invalid_model_list_offers_no_models(body: bytes, configure: Turn) -> None:
    with RawStandIn(http(body)) as running:
        configure(embedding_base_url=running.url)
        assert [model.id for model in available_models() if model.id.startswith("openai:")] == []


@pytest.mark.django_db
def test_unusable_model_ids_are_left_out(configure: Turn) -> None:
    ids = ["good", "x" * 300, "half \ud800", "nul \0", *(f"m{n}" for n in range(5_000))]
    with RawStandIn(http(json.dumps({"data": [{"id": id} for id in ids]}).encode())) as running:
        configure(embedding_base_url=running.url)
        found = [model.id for model in available_models() if model.id.startswith("openai:")]
    assert found[:2] == ["openai:good", "openai:m0"]
    assert len(found) == 1_000
