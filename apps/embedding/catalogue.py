"""The available embedding models, and the embedder of each."""

import logging

from apps.core.config import config
from apps.core.errors import InvalidInput, Unavailable
from apps.embedding.cache import CachedEmbedder, VectorCache
from apps.embedding.replies import model_missing
from apps.embedding.server import ServerEmbedder
from apps.embedding.servers import (
    LMSTUDIO_PREFIX,
    OPENAI_PREFIX,
    configured_server,
    downloaded_in,
    list_models,
    server_of,
)
from apps.embedding.static import FOLDER, MODEL_ID, StaticCodeEmbedder
from apps.embedding.types import Embedder, EmbeddingModel
from apps.embedding.wire import wire
from apps.servers.kinds import LMSTUDIO
from apps.servers.services import current

logger = logging.getLogger("codeinfo.ingest")

DEFAULT_MODEL = MODEL_ID
PREFIXES = (OPENAI_PREFIX, LMSTUDIO_PREFIX)
_STATIC = StaticCodeEmbedder()


def available_models() -> list[EmbeddingModel]:
    """The built-in model, then the embedding models of the configured server and of LM Studio.

    The models of a server that fails are left out. The failure is logged.
    """
    return [_built_in(), *_server_models(), *_lmstudio_models()]


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
    """The embedding models of the configured server; all its models if none is marked as one."""
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
        EmbeddingModel(f"{OPENAI_PREFIX}{model.id}", model.id, context_length=model.context_length)
        for model in embedders
    ]


def _lmstudio_models() -> list[EmbeddingModel]:
    """The embedding models of LM Studio. A failure is only debug information, since most people do
    not run LM Studio."""
    try:
        models = wire().submit(downloaded_in(current(LMSTUDIO))).result()
    except Unavailable as error:
        logger.debug("no LM Studio", extra={"context": {"reason": error.message}})
        return []
    return [
        EmbeddingModel(
            id=f"{LMSTUDIO_PREFIX}{model.key}",
            display_name=f"{model.name} (LM Studio)",
            context_length=model.max_context,
            format=model.format,
            size=model.size,
        )
        for model in models
        if model.embeds
    ]


def resolve(model_id: str) -> str:
    """The full id of a model: MODEL_ID of the built-in one, `openai:<id>` or `lmstudio:<id>`.

    An id without a prefix is looked up on the servers. A full id is not, since servers accept names
    that they do not list. Raises InvalidInput if no server has the model or if both have it, and
    Unavailable if the server fails.
    """
    prefix = next((prefix for prefix in PREFIXES if model_id.startswith(prefix)), "")
    configured = configured_server() is not None
    named = prefix and model_id != prefix and (configured or prefix == LMSTUDIO_PREFIX)
    if model_id == MODEL_ID or named:
        return model_id
    full_ids = _full_ids(model_id)
    if len(full_ids) == 1:
        return full_ids[0]
    if full_ids:
        raise InvalidInput(f"Two servers have this model. Choose {' or '.join(full_ids)}")
    raise InvalidInput(
        f"There is no embedding model {model_id!r}"
        if configured
        else f"There is no embedding model {model_id!r}. Enter a server on the "
        "Providers page or set CODEINFO_EMBEDDING_BASE_URL to use models of a server, or start LM "
        f"Studio; {MODEL_ID} is built in"
    )


def _full_ids(bare_id: str) -> list[str]:
    """The full ids of the models with this id on the servers."""
    server = configured_server()
    listed = [f"{OPENAI_PREFIX}{model.id}" for model in list_models(server)] if server else []
    listed += [model.id for model in _lmstudio_models()]
    return [full for full in listed if full.partition(":")[2] == bare_id]


def check_server(model_id: str) -> None:
    """Raise Unavailable if the server of a model fails or refuses the key.

    For the built-in model, check the configured server, if there is one.
    """
    if model_id.startswith(LMSTUDIO_PREFIX):
        wire().submit(downloaded_in(current(LMSTUDIO))).result()
    elif (server := configured_server()) is not None:
        list_models(server)


def get_embedder(model_id: str) -> Embedder:
    """The embedder of a model, by its full id. The caller closes it to abort its calls.

    The built-in embedder is shared, and closing it does nothing. Raises Unavailable
    EMBED_MODEL_MISSING if the id is unknown or its server is not configured.
    """
    if model_id == MODEL_ID:
        return _STATIC
    server = server_of(model_id)
    if server is None:
        reason = "no server is on the Providers page, and CODEINFO_EMBEDDING_BASE_URL is not set"
        raise model_missing(model_id, "" if configured_server() else reason)
    embedder = ServerEmbedder(server, model_id.removeprefix(f"{server.kind}:"))
    limit = config().embedding_cache_mb << 20
    if not limit:
        return embedder
    path = config().data_dir.absolute() / "embedded.sqlite3"
    return CachedEmbedder(embedder, VectorCache(path, f"{server.api} {model_id}", limit))
