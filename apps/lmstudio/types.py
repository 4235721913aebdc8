"""The values that this app exchanges with others, independent of LM Studio's SDK."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from apps.core.http.limits import MAX_MODELS, is_name, label
from apps.core.types import JSON

# Larger numbers are invalid; a database column would overflow.
MAX_NUMBER = 2**53
# Types of models that cannot chat.
EMBEDDING_TYPES = frozenset({"embedding", "vector"})


@dataclass(frozen=True)
class DownloadedModel:
    """A downloaded model, loaded or not (contract.md §5.8). None: the server does not say.

    key: the id that requests name (`modelKey`).
    size: bytes on disk.
    parameters: a label such as "7B".
    max_context: tokens.
    """

    key: str
    name: str
    type: str
    format: str | None = None
    path: str | None = None
    size: int | None = None
    architecture: str | None = None
    parameters: str | None = None
    max_context: int | None = None
    vision: bool | None = None
    trained_for_tools: bool | None = None

    @property
    def embeds(self) -> bool:
        """True for an embedding model."""
        return self.type in EMBEDDING_TYPES


@dataclass(frozen=True)
class PredictionRequest:
    """The input of one prediction, in the JSON shapes of LM Studio's SDK."""

    messages: list[JSON]
    tools: list[JSON]


@dataclass(frozen=True)
class TextFragment:
    """A fragment of text. `kind` is the SDK's `reasoning_type`: "none" for text, "reasoning", or
    the kind of a tag that starts or ends reasoning."""

    text: str
    kind: str


@dataclass(frozen=True)
class ToolCallReceived:
    """A complete tool call. `arguments` is unvalidated JSON."""

    id: str | None
    name: str
    arguments: Any


@dataclass(frozen=True)
class ModelLoading:
    """Progress without output: the model loads, or processes the prompt."""


@dataclass(frozen=True)
class PredictionEnd:
    """The end of a prediction.

    reason: the SDK's `stop_reason`.
    prompt, predicted, total: token counts, if reported.
    """

    reason: str
    prompt: int | None
    predicted: int | None
    total: int | None


PredictionEvent = TextFragment | ToolCallReceived | ModelLoading | PredictionEnd


def read_models(answer: Any) -> tuple[DownloadedModel, ...]:
    """Parse a list of models; keep its order.

    Formats and types change with LM Studio's versions, so any string is accepted. An entry without
    a valid key is skipped, so that one unknown model never hides the others.
    """
    entries = answer if isinstance(answer, list) else []
    named = (entry for entry in entries if is_name(_text(entry, "modelKey")))
    return tuple(map(_read_model, islice(named, MAX_MODELS)))


def _read_model(entry: Mapping[str, Any]) -> DownloadedModel:
    key = _text(entry, "modelKey") or ""
    return DownloadedModel(
        key=key,
        name=_label(entry, "displayName") or key,
        type=_label(entry, "type") or "llm",
        format=_label(entry, "format"),
        path=_label(entry, "path"),
        size=_number(entry, "sizeBytes"),
        architecture=_label(entry, "architecture"),
        parameters=_label(entry, "paramsString"),
        max_context=_number(entry, "maxContextLength"),
        vision=_flag(entry, "vision"),
        trained_for_tools=_flag(entry, "trainedForToolUse"),
    )


def _text(entry: Any, name: str) -> str | None:
    value = entry.get(name) if isinstance(entry, Mapping) else None
    return value if isinstance(value, str) and value else None


def _label(entry: Mapping[str, Any], name: str) -> str | None:
    text = _text(entry, name)
    return text and label(text)


def _number(entry: Mapping[str, Any], name: str) -> int | None:
    value = entry.get(name)
    return value if type(value) is int and 0 <= value <= MAX_NUMBER else None


def _flag(entry: Mapping[str, Any], name: str) -> bool | None:
    value = entry.get(name)
    return value if isinstance(value, bool) else None
