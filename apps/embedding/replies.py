"""Reading what an OpenAI-compatible embedding server answers, or refuses to."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from apps.core.errors import Unavailable
from apps.core.limits import MAX_MODELS, is_name
from apps.core.replies import MAX_LIST
from apps.embedding.types import Vectors

# Numbers of a vector; known models have at most 8,192.
MAX_DIMENSION = 16_384
# Bytes that one of them may take in JSON, with the spaces around it.
NUMBER_BYTES = 32
# What reading a reply of another shape raises, or one with numbers and levels that Python refuses.
NONSENSE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
# Tokens; more is no length that a model has, and no number that a database takes.
MAX_CONTEXT = 10**9
_NO_SUCH_MODEL = re.compile(
    r"model\b.{0,200}\b(not found|not exist|not loaded|unknown)|no models? ", re.IGNORECASE
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
    """One entry of the server's model list."""

    id: str
    context_length: int | None
    embeds: bool


@dataclass(frozen=True)
class Setting:
    """What a person looks at when a server refuses: where its address stands, and its key."""

    address: str
    key: str


OPENAI = Setting(
    "CODEINFO_EMBEDDING_BASE_URL",
    "CODEINFO_EMBEDDING_API_KEY, or CODEINFO_OPENAI_API_KEY where it is the chat server's",
)
LMSTUDIO = Setting("the address on the LM Studio page", "CODEINFO_LMSTUDIO_API_TOKEN")


def unavailable(message: str, *, retryable: bool = False) -> Unavailable:
    return Unavailable(message, code="EMBEDDER_UNAVAILABLE", retryable=retryable)


def model_missing(model_id: str, why: str = "") -> Unavailable:
    """The model cannot be had; `model_id` is the full id (openai:<id>, lmstudio:<id>)."""
    message = f"{model_id} is not available on the embedding server" + (f": {why}" if why else "")
    return Unavailable(
        message, code="EMBED_MODEL_MISSING", details={"modelId": model_id}, retryable=False
    )


def most_bytes(texts: int) -> int:
    """What a reply with the vectors of so many texts may take."""
    return MAX_LIST + texts * MAX_DIMENSION * NUMBER_BYTES


def read_vectors(body: bytes, expected: int) -> Vectors:
    """The vectors of an answer in the order of the texts, shape (expected, dimension).

    Raises Unavailable where the answer is not that: other JSON, a vector too few or too many, of
    unequal lengths, with anything in it that is no finite number.
    """
    nonsense = "The embedding server answered with something else than vectors"
    try:
        entries = sorted(json.loads(body)["data"], key=lambda entry: entry["index"])
        places = [entry["index"] for entry in entries]
        with np.errstate(over="ignore"):
            vectors = np.array([entry["embedding"] for entry in entries], np.float32)
    except NONSENSE as error:
        raise unavailable(nonsense) from error
    if places != list(range(expected)):
        raise unavailable(f"The embedding server gave {len(places)} vectors for {expected} texts")
    if vectors.ndim != 2 or not 0 < vectors.shape[1] <= MAX_DIMENSION:
        raise unavailable(nonsense)
    if not np.isfinite(vectors).all():
        raise unavailable("The embedding server gave a vector with something else than numbers")
    return vectors


def failure(model_id: str, status: int, body: bytes, setting: Setting = OPENAI) -> Unavailable:
    """The typed error for an answer that is not 200. The server's words are kept short; those of a
    401 are left out, since some servers quote the key."""
    if status in (401, 403) and not _names_missing_model(body):
        return unavailable(f"The embedding server refused the key ({status}). Check {setting.key}")
    words = error_text(body)
    if _names_missing_model(body):
        return model_missing(model_id, words)
    if 300 <= status < 400:
        return unavailable(
            f"The embedding server redirects ({status}); redirects are not followed. "
            f"Set {setting.address} to its final address"
        )
    if status == 404:
        return unavailable(
            "The embedding server knows no such address (404). "
            f"Check {setting.address}; OpenAI's usually ends in /v1"
        )
    message = f"The embedding server answered {status}" + (f": {words}" if words else "")
    return unavailable(message, retryable=status in RETRYABLE)


def _names_missing_model(body: bytes) -> bool:
    error = _error_of(body)
    if isinstance(error, Mapping) and error.get("code") == "model_not_found":
        return True
    return bool(_NO_SUCH_MODEL.search(error_text(body)))


def error_text(body: bytes) -> str:
    """The server's own sentence, in its many shapes; "" where there is none."""
    error = _error_of(body)
    words = error.get("message") if isinstance(error, Mapping) else error
    return " ".join(words.split())[:300] if isinstance(words, str) else ""


def _error_of(body: bytes) -> Any:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(answer, Mapping):
        return None
    return answer.get("error", answer.get("message", answer.get("detail")))


def read_models(body: bytes) -> list[ServerModel]:
    """The server's models in its order, those whose ids can be used.

    Raises Unavailable where the answer is no model list.
    """
    try:
        entries = (entry for entry in json.loads(body)["data"] if is_name(entry["id"]))
        return [_model(entry) for entry in islice(entries, MAX_MODELS)]
    except NONSENSE as error:
        raise unavailable("The embedding server's model list cannot be read") from error


def _model(entry: Mapping[str, Any]) -> ServerModel:
    # vLLM, LM Studio and OpenRouter put the length on the entry, llama.cpp under `meta`.
    meta = entry.get("meta")
    places = [entry, meta] if isinstance(meta, Mapping) else [entry]
    lengths = (place.get(key) for place in places for key in _CONTEXT_KEYS)
    return ServerModel(
        id=entry["id"],
        context_length=next((n for n in lengths if type(n) is int and 0 < n <= MAX_CONTEXT), None),
        embeds=_says_embedding(entry),
    )


def _says_embedding(entry: Mapping[str, Any]) -> bool:
    told = [entry["id"], entry.get("type"), entry.get("task"), entry.get("capabilities")]
    return "embed" in str(told).lower()
