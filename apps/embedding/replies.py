"""Parse the replies and errors of OpenAI-compatible embedding servers.

API: https://platform.openai.com/docs/api-reference/embeddings.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from apps.core.errors import Unavailable
from apps.core.http.limits import MAX_MODELS, is_name
from apps.core.http.replies import MAX_LIST
from apps.embedding.types import Vectors
from apps.servers.types import Server

# Numbers of a vector. Today's models have at most 8,192.
MAX_DIMENSION = 16_384
# Bytes of one number in JSON, with spaces.
NUMBER_BYTES = 32
# Raised by parsing a reply of another shape, or with numbers or nesting beyond Python's limits.
PARSE_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
# Tokens. No model has a longer context, and a database may refuse greater numbers.
MAX_CONTEXT = 10**9
_NO_SUCH_MODEL = re.compile(
    r"model\b.{0,200}\b(not found|not exist|not loaded|unknown)|no models? ", re.IGNORECASE
)
_TOO_LARGE = re.compile(
    rb"too (large|long|big)|(batch|context) (size|length)|out of memory", re.IGNORECASE
)
_CONTEXT_KEYS = (
    "context_length",
    "max_model_len",
    "max_context_length",
    "loaded_context_length",
    "n_ctx",
)


@dataclass(frozen=True)
class ServerModel:
    """One entry of a server's model list."""

    id: str  # without a prefix
    context_length: int | None  # tokens; None: unknown
    embeds: bool  # the entry says that it is an embedding model


# Where a person changes address and key of a server, for error messages: of the settings, of the
# chat server that was saved, and of LM Studio.
OF_SETTINGS = (
    "CODEINFO_EMBEDDING_BASE_URL",
    "CODEINFO_EMBEDDING_API_KEY, or CODEINFO_OPENAI_API_KEY where it is the chat server's",
)
SAVED = ("the address on the Providers page", "the key on the Providers page")
OF_LMSTUDIO = (
    "the address on the LM Studio page",
    "CODEINFO_LMSTUDIO_API_TOKEN, or the token on the LM Studio page",
)


def unavailable(message: str, *, retryable: bool = False) -> Unavailable:
    """The error for a server that fails."""
    return Unavailable(message, code="EMBEDDER_UNAVAILABLE", retryable=retryable)


class TooLarge(Unavailable):
    """The server refused a request, maybe because it has too many texts or too long ones."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="EMBEDDER_UNAVAILABLE", retryable=False)


def is_too_large(status: int, body: bytes) -> bool:
    """Whether a smaller request may be taken. llama.cpp answers 500 to a text that is too long, and
    PyTorch's servers to a batch that does not fit into memory."""
    return status in (400, 413, 422) or (status == 500 and bool(_TOO_LARGE.search(body[:2_000])))


def model_missing(model_id: str, why: str = "") -> Unavailable:
    """The error for a model that its server does not have. `model_id` is the full id."""
    message = f"{model_id} is not available on the embedding server" + (f": {why}" if why else "")
    return Unavailable(
        message, code="EMBED_MODEL_MISSING", details={"modelId": model_id}, retryable=False
    )


def most_bytes(texts: int) -> int:
    """The greatest size in bytes of a reply with the vectors of this many texts."""
    return MAX_LIST + texts * MAX_DIMENSION * NUMBER_BYTES


def read_vectors(body: bytes, expected: int) -> Vectors:
    """The vectors of a reply in the order of the texts, float32 (expected, dimension).

    Raises TooLarge for too few vectors, and Unavailable for a reply of another shape: other JSON,
    too many vectors, vectors of different lengths, or values that are not finite numbers.
    """
    invalid = "The reply of the embedding server does not contain vectors"
    try:
        entries = json.loads(body)["data"]
        indexes = [entry.get("index") for entry in entries]
        # Some servers send no indexes; then the order counts.
        if all(index is None for index in indexes):
            indexes = list(range(len(entries)))
        else:
            entries = sorted(entries, key=lambda entry: entry["index"])
            indexes.sort()
        with np.errstate(over="ignore"):
            vectors = np.array([entry["embedding"] for entry in entries], np.float32)
    except PARSE_ERRORS as error:
        if words := error_text(body):  # some servers send errors under status 200
            kind = TooLarge if _TOO_LARGE.search(words.encode()) else unavailable
            raise kind(f"The embedding server answered: {words}") from error
        raise unavailable(invalid) from error
    if vectors.ndim == 3 and vectors.shape[1] == 1:  # llama.cpp puts a list around each
        vectors = vectors[:, 0]
    if indexes != list(range(expected)):
        problem = f"The embedding server returned {len(indexes)} vectors for {expected} texts. "
        advice = "If it takes fewer at a time, lower CODEINFO_EMBEDDING_BATCH"
        # A server that answers for the first texts of a batch takes fewer.
        is_part = len(indexes) < expected
        raise (TooLarge if is_part else unavailable)(problem + advice)
    if vectors.ndim != 2 or not 0 < vectors.shape[1] <= MAX_DIMENSION:
        raise unavailable(invalid)
    if not np.isfinite(vectors).all():
        raise unavailable("The embedding server returned a vector with values that are not numbers")
    return vectors


def failure(model_id: str, status: int, body: bytes, server: Server) -> Unavailable:
    """The error for a reply with another status than 200. The server's message is shortened, and
    left out for 401 and 403, since some servers quote the key."""
    settings = OF_LMSTUDIO if server.kind == "lmstudio" else OF_SETTINGS
    address, key = SAVED if server.kind == "openai" and server.is_saved else settings
    if status in (401, 403) and not _names_missing_model(body):
        return unavailable(f"The embedding server refused the key ({status}). Check {key}")
    text = error_text(body)
    if _names_missing_model(body):
        return model_missing(model_id, text)
    if 300 <= status < 400:
        return unavailable(
            f"The embedding server redirects ({status}); redirects are not followed. "
            f"Set {address} to its final address"
        )
    if status == 404:
        return unavailable(
            "The embedding server has no such path (404). "
            f"Check {address}; OpenAI's usually ends in /v1"
        )
    message = f"The embedding server answered {status}" + (f": {text}" if text else "")
    if is_too_large(status, body):
        advice = "If its context is short, set INGEST_FALLBACK_TOKENS to it"
        return TooLarge(f"{message}. {advice}")
    return unavailable(message, retryable=status in RETRYABLE)


def _names_missing_model(body: bytes) -> bool:
    error = _error_of(body)
    if isinstance(error, Mapping) and error.get("code") == "model_not_found":
        return True
    return bool(_NO_SUCH_MODEL.search(error_text(body)))


def error_text(body: bytes) -> str:
    """The message in an error reply, in any of the usual shapes; "" if there is none."""
    error = _error_of(body)
    text = error.get("message") if isinstance(error, Mapping) else error
    return " ".join(text.split())[:300] if isinstance(text, str) else ""


def _error_of(body: bytes) -> Any:
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(reply, Mapping):
        return None
    return reply.get("error", reply.get("message", reply.get("detail")))


def read_models(body: bytes) -> list[ServerModel]:
    """The models of a server in its order. Leaves out unusable ids.

    Raises Unavailable if the reply is not a model list.
    """
    try:
        entries = (entry for entry in json.loads(body)["data"] if is_name(entry["id"]))
        return [_model(entry) for entry in islice(entries, MAX_MODELS)]
    except PARSE_ERRORS as error:
        raise unavailable("The embedding server's model list cannot be read") from error


def _model(entry: Mapping[str, Any]) -> ServerModel:
    # vLLM, LM Studio and OpenRouter have the length in the entry, llama.cpp under `meta`.
    meta = entry.get("meta")
    places = [entry, meta] if isinstance(meta, Mapping) else [entry]
    lengths = (place.get(key) for place in places for key in _CONTEXT_KEYS)
    return ServerModel(
        id=entry["id"],
        context_length=next((n for n in lengths if type(n) is int and 0 < n <= MAX_CONTEXT), None),
        embeds=_is_embedding_model(entry),
    )


def _is_embedding_model(entry: Mapping[str, Any]) -> bool:
    values = [entry["id"], entry.get("type"), entry.get("task"), entry.get("capabilities")]
    return "embed" in str(values).lower()
