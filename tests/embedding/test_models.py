"""The embedding models that are listed, and their ids."""

from collections.abc import Callable, Iterator

import pytest

from apps.core.errors import InvalidInput, Unavailable
from apps.embedding.catalogue import DEFAULT_MODEL, available_models, get_embedder, resolve
from apps.embedding.static import MODEL_ID
from apps.servers import services
from apps.servers.kinds import OPENAI
from tests.stand_ins.embeddings_server import DIMENSION, EmbeddingsServer, Reply

# LM Studio's address may be a row.
pytestmark = [pytest.mark.django_db, pytest.mark.door]
Turn = Callable[..., None]


@pytest.fixture
def server(configure: Turn) -> Iterator[EmbeddingsServer]:
    with EmbeddingsServer() as running:
        configure(embedding_base_url=running.url)
        yield running


def ids() -> list[str]:
    return [model.id for model in available_models()]


def test_the_built_in_model_needs_no_server() -> None:
    (model,) = available_models()
    assert (model.id, model.context_length) == (MODEL_ID, None)
    assert model.size
    assert model.size > 1_000_000
    assert resolve(MODEL_ID) == DEFAULT_MODEL
    assert get_embedder(DEFAULT_MODEL) is get_embedder(DEFAULT_MODEL)


def test_embedding_models_of_the_server_are_listed(server: EmbeddingsServer) -> None:
    server.models = [
        {"id": "chatter"},
        {"id": "nomic-embed-text", "max_model_len": 2048},
        {"id": "bge", "type": "embeddings"},
    ]
    assert ids() == [MODEL_ID, "openai:nomic-embed-text", "openai:bge"]
    assert available_models()[1].context_length == 2048
    assert available_models()[1].display_name == "nomic-embed-text"


def test_all_models_are_listed_if_none_is_marked_as_embedding(server: EmbeddingsServer) -> None:
    server.models = [{"id": "bge-m3"}, {"id": "gte"}]
    assert ids() == [MODEL_ID, "openai:bge-m3", "openai:gte"]


@pytest.mark.parametrize(
    "reply", [Reply(500, {}), Reply(200, b"nonsense"), Reply(200, {"data": [3]}), Reply(401, {})]
)
def test_a_failing_server_leaves_the_built_in_model(server: EmbeddingsServer, reply: Reply) -> None:
    server.script.append(reply)
    assert ids() == [MODEL_ID]


def test_the_chat_server_is_the_default_with_its_key(
    server: EmbeddingsServer, configure: Turn
) -> None:
    configure(embedding_base_url="", openai_base_url=server.url, openai_api_key="sesame")
    assert ids() == [MODEL_ID, "openai:text-embedding-small"]
    assert server.requests[0].headers["Authorization"] == "Bearer sesame"


def test_the_chat_servers_key_goes_to_no_other_server(
    server: EmbeddingsServer, configure: Turn
) -> None:
    configure(openai_base_url="http://127.0.0.1:9/v1", openai_api_key="sesame")
    assert "openai:text-embedding-small" in ids()
    assert "Authorization" not in server.requests[0].headers


def test_the_saved_chat_server_is_the_default_with_its_key(
    server: EmbeddingsServer, configure: Turn
) -> None:
    """The key of the settings is for the addresses of the settings."""
    configure(embedding_base_url="", embedding_api_key="of the settings")
    services.save(OPENAI, server.url, "sesame")
    assert ids() == [MODEL_ID, "openai:text-embedding-small"]
    assert get_embedder("openai:text-embedding-small").embed_query("x").shape == (DIMENSION,)
    sent = {request.headers["Authorization"] for request in server.requests}
    assert sent == {"Bearer sesame"}


def test_an_embedding_server_of_the_settings_comes_before_the_saved_one(
    server: EmbeddingsServer,
) -> None:
    services.save(OPENAI, "http://127.0.0.1:9/v1", "sesame")
    assert "openai:text-embedding-small" in ids()
    assert "Authorization" not in server.requests[0].headers


@pytest.mark.fault("An address that leads elsewhere")
def test_the_name_of_a_saved_server_is_checked_when_it_is_used(
    server: EmbeddingsServer, configure: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(embedding_base_url="")
    services.save(OPENAI, "http://rebinding.example/v1")
    answer = [(2, 1, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *name, **more: answer)
    with pytest.raises(Unavailable, match="must not lead to a link-local"):
        get_embedder("openai:small").embed_query("x")


def test_a_refused_key_of_a_saved_server_names_the_page(
    server: EmbeddingsServer, configure: Turn
) -> None:
    configure(embedding_base_url="")
    services.save(OPENAI, server.url, "wrong")
    server.script.append(Reply(401, {}))
    with pytest.raises(Unavailable, match="Check the key on the Providers page"):
        get_embedder("openai:small").embed_query("x")


def test_an_id_without_a_prefix_is_resolved(server: EmbeddingsServer) -> None:
    assert resolve("text-embedding-small") == "openai:text-embedding-small"
    assert resolve("openai:not-listed") == "openai:not-listed"


@pytest.mark.parametrize("model_id", ["unheard-of", "openai:", "", "lmstudio:"])
def test_an_unknown_id_is_refused(server: EmbeddingsServer, model_id: str) -> None:
    with pytest.raises(InvalidInput):
        resolve(model_id)


def test_without_a_server_its_models_are_missing() -> None:
    with pytest.raises(InvalidInput, match="CODEINFO_EMBEDDING_BASE_URL"):
        resolve("openai:small")
    with pytest.raises(Unavailable, match="CODEINFO_EMBEDDING_BASE_URL") as caught:
        get_embedder("openai:small")
    assert caught.value.code == "EMBED_MODEL_MISSING"
    assert caught.value.details == {"modelId": "openai:small"}
