"""LM Studio's embedding models: listed over its SDK, used over REST in batches."""

from collections.abc import Callable, Iterator

import pytest

# Imported here, where nobody waits: it takes a second.
import apps.lmstudio.sdk  # noqa: F401
from apps.core.errors import InvalidInput, Unavailable
from apps.embedding.catalogue import available_models, get_embedder, resolve
from apps.embedding.static import MODEL_ID
from apps.embedding.types import EmbeddingText
from apps.servers import services
from apps.servers.kinds import LMSTUDIO
from tests.ports import free_ports
from tests.stand_ins.embeddings_server import EmbeddingsServer
from tests.stand_ins.lmstudio_server import EMBEDDER, LMStudioStandIn, embedder, llm
from tests.stand_ins.openai_server import DIMENSION, embed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("wire_ends"), pytest.mark.door]
FULL = f"lmstudio:{EMBEDDER}"
TOKEN = "sk-lm-abcd1234:ABCDEFGHIJ0123456789"


@pytest.fixture
def server(configure: Callable[..., None]) -> Iterator[LMStudioStandIn]:
    with LMStudioStandIn() as running:
        configure(lmstudio_base_url=running.url)
        yield running


def test_only_its_embedding_models_are_listed(server: LMStudioStandIn) -> None:
    server.models = [llm("chatter"), embedder(EMBEDDER), {"type": "embedding", "modelKey": "odd"}]
    first, second, third = available_models()
    assert [first.id, second.id, third.id] == [MODEL_ID, FULL, "lmstudio:odd"]
    assert (second.context_length, second.format, second.size) == (2048, "gguf", 84_106_624)
    assert second.display_name == f"{EMBEDDER} (LM Studio)"


def test_without_lm_studio_other_models_are_listed(configure: Callable[..., None]) -> None:
    assert [model.id for model in available_models()] == [MODEL_ID]


def test_texts_are_sent_in_batches_with_the_token(
    server: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    server.token = TOKEN
    configure(lmstudio_api_token=TOKEN, embedding_batch=2)
    model = get_embedder(FULL)
    assert model.id == FULL
    assert model.max_tokens == int(2048 * 0.85)
    texts = [EmbeddingText(f"body {n}", path="a.py") for n in range(3)]
    assert model.embed_documents(texts).shape == (3, DIMENSION)
    assert model.embed_query("where?").tolist() == pytest.approx(embed("where?"), abs=1e-6)
    bodies = [body for path, _, body in server.requests if path == "/v1/embeddings"]
    assert sorted(len(body["input"]) for body in bodies) == [1, 1, 2]
    assert {body["model"] for body in bodies} == {EMBEDDER}


def test_the_saved_address_is_used_for_embedding(
    server: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    configure(lmstudio_base_url="http://127.0.0.1:9")
    services.save(LMSTUDIO, server.url)
    assert get_embedder(FULL).embed_query("x").shape == (DIMENSION,)


def test_a_refused_token_names_its_setting(server: LMStudioStandIn) -> None:
    server.token = TOKEN
    with pytest.raises(Unavailable, match="Check CODEINFO_LMSTUDIO_API_TOKEN"):
        get_embedder(FULL).embed_query("x")


def test_an_unreachable_server_is_unavailable(configure: Callable[..., None]) -> None:
    configure(lmstudio_base_url=f"http://127.0.0.1:{free_ports(1)}")
    with pytest.raises(Unavailable, match="is away") as caught:
        get_embedder(FULL).embed_query("x")
    assert caught.value.code == "EMBEDDER_UNAVAILABLE"


@pytest.mark.fault("An address that leads elsewhere")
def test_a_name_of_a_metadata_service_is_not_connected_to(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(lmstudio_base_url="http://models.example:1234")
    answer = [(2, 1, 6, "", ("169.254.169.254", 1234))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *name, **more: answer)
    with pytest.raises(Unavailable, match="must not lead to a link-local"):
        get_embedder(FULL).embed_query("x")


def test_an_id_without_a_prefix_is_resolved_unless_two_servers_have_it(
    server: LMStudioStandIn, configure: Callable[..., None]
) -> None:
    assert resolve(EMBEDDER) == FULL
    assert resolve("lmstudio:not-listed") == "lmstudio:not-listed"
    with EmbeddingsServer() as other:
        configure(embedding_base_url=other.url)
        other.models = [{"id": EMBEDDER}]
        with pytest.raises(InvalidInput, match=f"openai:{EMBEDDER} or lmstudio:{EMBEDDER}"):
            resolve(EMBEDDER)
