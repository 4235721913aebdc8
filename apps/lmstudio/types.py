"""The values of LM Studio that others see."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from apps.core.limits import MAX_MODELS, is_name, label

JSON = dict[str, Any]

# No size and no length is larger, and no database takes any integer.
MAX_NUMBER = 2**53
# What cannot chat.
EMBEDDING_TYPES = frozenset({"embedding", "vector"})


@dataclass(frozen=True)
class Downloaded:
    """A model on LM Studio's disk, loaded or not. What it does not tell is None."""

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
        return self.type in EMBEDDING_TYPES


@dataclass(frozen=True)
class PredictionRequest:
    """What one round is asked, in LM Studio's own shapes."""

    messages: list[JSON]
    tools: list[JSON]


@dataclass(frozen=True)
class TextFragment:
    """A fragment. `kind` is "none" (text), "reasoning", or the tag that begins or ends that."""

    text: str
    kind: str


@dataclass(frozen=True)
class ToolCallReceived:
    """A tool call, complete."""

    id: str | None
    name: str
    arguments: Any


@dataclass(frozen=True)
class ModelLoading:
    """A sign of life: the model is being loaded, or reads its question."""


@dataclass(frozen=True)
class PredictionEnd:
    """Why the round is over, and its token counts."""

    reason: str
    prompt: int | None
    predicted: int | None
    total: int | None


PredictionEvent = TextFragment | ToolCallReceived | ModelLoading | PredictionEnd


def read_models(answer: Any) -> tuple[Downloaded, ...]:
    """The models of a listing, in its order.

    Formats and types change with LM Studio's versions: any word will do, and an entry without a key
    that can be used is left out, so that one strange model never hides the others.
    """
    entries = answer if isinstance(answer, list) else []
    named = (entry for entry in entries if is_name(_text(entry, "modelKey")))
    return tuple(map(_read, islice(named, MAX_MODELS)))


def _read(entry: Mapping[str, Any]) -> Downloaded:
    key = _text(entry, "modelKey") or ""
    return Downloaded(
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
