"""Which embedding models there are, and the embedder of each."""

import logging
from functools import cache

from apps.ingest.embedding.replies import model_missing
from apps.ingest.embedding.server import (
    PREFIX,
    ServerEmbedder,
    configured_server,
    list_models,
)
from apps.ingest.embedding.static import FOLDER, MODEL_ID, StaticCodeEmbedder
from apps.ingest.types import Embedder, EmbeddingModel
from codeinfo.errors import InvalidInput, Unavailable

logger = logging.getLogger("codeinfo.ingest")

DEFAULT_MODEL = MODEL_ID


def available_models() -> list[EmbeddingModel]:
    """The built-in model, then what the configured server offers for embedding.

    A server that is away or answers nonsense offers nothing; that is logged, not raised.
    """
    return [_built_in(), *_server_models()]


def _built_in() -> EmbeddingModel:
    weights = FOLDER / "weights.npz"
    return EmbeddingModel(
        id=MODEL_ID,
        display_name=f"{MODEL_ID} (built in)",
        format="npz",
        size=weights.stat().st_size,
        filename=weights.name,
    )


def _server_models() -> list[EmbeddingModel]:
    """Those that call themselves embedders; all of them where none does."""
    server = configured_server()
    if server is None:
        return []
    try:
        models = list_models(server)
    except Unavailable as error:
        logger.warning("no embedding models", extra={"context": {"reason": error.message}})
        return []
    embedders = [model for model in models if model.embeds] or models
    return [
        EmbeddingModel(f"{PREFIX}{model.id}", model.id, context_length=model.context_length)
        for model in embedders
    ]


def resolve(model_id: str) -> str:
    """The full id of a model: that of the built-in embedder, or `openai:<id>`.

    A bare id is looked for on the server; a full one is believed, since servers answer to more
    names than they list. Raises InvalidInput for one that nothing here offers, Unavailable where
    the server cannot be asked.
    """
    if model_id == MODEL_ID:
        return model_id
    server = configured_server()
    if server is None:
        raise InvalidInput(
            f"There is no embedding model {model_id!r}. Set CODEINFO_EMBEDDING_BASE_URL to use "
            f"models of a server; {MODEL_ID} is built in"
        )
    if model_id.removeprefix(PREFIX) and model_id.startswith(PREFIX):
        return model_id
    if model_id in {model.id for model in list_models(server)}:
        return f"{PREFIX}{model_id}"
    raise InvalidInput(f"There is no embedding model {model_id!r}")


def is_gone(model_id: str) -> bool:
    """Whether this is the id of a built-in model that an earlier version had."""
    return model_id != MODEL_ID and not model_id.startswith(PREFIX)


def get_embedder(model_id: str) -> Embedder:
    """The embedder of a full id. The built-in one is shared; one of a server is the caller's own,
    to be closed when its calls must end.

    Raises Unavailable(EMBED_MODEL_MISSING) where no server is configured, or for an unknown id.
    """
    if model_id == MODEL_ID:
        return _static()
    server = configured_server()
    if server is None or not model_id.startswith(PREFIX):
        raise model_missing(model_id, "" if server else "CODEINFO_EMBEDDING_BASE_URL is not set")
    return ServerEmbedder(server, model_id.removeprefix(PREFIX))


@cache
def _static() -> StaticCodeEmbedder:
    return StaticCodeEmbedder()
