"""The request bodies of the conversation routes (docs/contract.md §1.2).

All are strict: unknown keys are refused, and no value is coerced from another type.
"""

import math
import sys
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.conversations.models import DEFAULT_TITLE, Source, Turn
from apps.conversations.parts import Part
from apps.core.config import PROVIDERS
from apps.core.errors import InvalidInput
from apps.core.values.surrogates import is_storable

# JSON integers may be larger, but cannot become floats.
LARGEST = sys.float_info.max


def refused(details: Any) -> InvalidInput:
    """The `validation_error` of contract.md §1.2; `details` by field."""
    return InvalidInput("Validation failed.", code="validation_error", details={"details": details})


class VerbatimStringField(serializers.CharField):
    """A string that is stored unchanged: neither converted nor trimmed.

    Empty strings, NUL and lone surrogates are rejected (Django REST framework's CharField).
    Unlike it, `apps.ingest`'s UTF8StringField trims, and `apps.logs`' RedactedStringField redacts.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "object", "additionalProperties": {}})
class StorableObjectField(serializers.JSONField):
    """A JSON object that every database can store: finite numbers, no NUL and no lone surrogate."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("Must be an object.")
        if not _storable(data):
            raise serializers.ValidationError("Holds text or numbers that cannot be stored.")
        return data


def _storable(value: Any) -> bool:
    match value:
        case str():
            return is_storable(value)
        case float():
            return math.isfinite(value)
        case dict():
            return all(_storable(key) and _storable(item) for key, item in value.items())
        case list():
            return all(_storable(item) for item in value)
    return True


@extend_schema_field({"type": "integer", "minimum": 0})
class CountField(serializers.Field[int, Any, int, Any]):
    """A whole number, 0 or more; 5.0 is one, true is not."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or data < 0 or data % 1:
            raise serializers.ValidationError("Must be a whole number, 0 or more.")
        return int(data)


@extend_schema_field({"type": "number", "exclusiveMinimum": 0})
class PositiveField(serializers.Field[float, Any, float, Any]):
    """A finite number above 0, as float."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float) or not 0 < data <= LARGEST:
            raise serializers.ValidationError("Must be a number above 0.")
        return float(data)


@extend_schema_field({"type": "integer", "enum": list(Turn.Rating.values)})
class RatingField(serializers.Field[int, Any, int, Any]):
    """1 for a good answer, -1 for a bad one."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or data not in Turn.Rating.values:
            raise serializers.ValidationError("Must be 1, -1 or null.")
        return int(data)


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses unknown keys."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [str(key) for key in data if key not in self.fields]
            if unknown:
                raise serializers.ValidationError({key: ["Unknown key."] for key in unknown})
        return super().to_internal_value(data)

    @classmethod
    def read(cls, data: Any) -> dict[str, Any]:
        """The validated values. Raises InvalidInput `validation_error`, details by field."""
        shape = cls(data=data)
        if not shape.is_valid():
            raise refused(shape.errors)
        return dict(shape.validated_data)


class NewConversation(StrictSerializer):
    """The body of `POST /conversations`."""

    provider = serializers.ChoiceField(PROVIDERS)
    model = VerbatimStringField(max_length=255)
    title = VerbatimStringField(max_length=255, default=DEFAULT_TITLE)
    flags = StorableObjectField(default=dict)
    # `source` is also a name of the base class, for something else.
    source = serializers.ChoiceField(Source.values, default=Source.REST)  # type: ignore[assignment]


class Usage(StrictSerializer):
    """Tokens of an answer."""

    inputTokens = CountField(required=False)
    outputTokens = CountField(required=False)
    totalTokens = CountField(required=False)
    cachedInputTokens = CountField(required=False)


class Timing(StrictSerializer):
    """Duration and speed of an answer."""

    totalTimeSec = PositiveField(required=False)
    tokensPerSecond = PositiveField(required=False)


class Command(StrictSerializer):
    """The step of an agent's command that a turn is."""

    name = VerbatimStringField(max_length=255)
    stepIndex = CountField()
    totalSteps = CountField()


class NewTurn(StrictSerializer):
    """The body of `POST /conversations/<id>/turns`."""

    role = serializers.ChoiceField(Turn.Role.values)
    content = VerbatimStringField()
    model = VerbatimStringField(max_length=255)
    provider = serializers.ChoiceField(PROVIDERS)
    source = serializers.ChoiceField(Source.values, default=Source.REST)  # type: ignore[assignment]
    toolCalls = StorableObjectField(required=False, allow_null=True)
    status = serializers.ChoiceField(("ok", "stopped", "failed"))
    command = Command(required=False)
    usage = Usage(required=False)
    timing = Timing(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        measured = [name for name in ("usage", "timing") if name in attrs]
        if measured and attrs["role"] != Turn.Role.ASSISTANT:
            raise serializers.ValidationError(
                {name: ["Only an assistant turn has it."] for name in measured}
            )
        return attrs


class NewRating(StrictSerializer):
    """The body of `POST /conversations/<id>/turns/<turn id>/rating`."""

    rating = RatingField(allow_null=True)


class NewTags(StrictSerializer):
    """The body of `POST /conversations/<id>/tags`. More or longer tags are none."""

    tags = serializers.ListField(child=VerbatimStringField(max_length=255), max_length=100)


class Inflight(StrictSerializer):
    inflightId = VerbatimStringField(required=False, max_length=128)


def turn_fields(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a Turn, from validated data of NewTurn."""
    parts = [*_tool_parts(data.get("toolCalls")), {"type": "text", "text": data["content"]}]
    names = ("role", "model", "provider", "source", "status", "command", "usage", "timing")
    return {"parts": parts} | {name: data[name] for name in names if name in data}


def _tool_parts(calls: Any) -> list[Part]:
    """The parts of `{"calls": [tool-result events]}`; items that are not objects are left out."""
    listed = calls.get("calls") if isinstance(calls, dict) else None
    if not isinstance(listed, list):
        return []
    return [_tool_part(call) for call in listed if isinstance(call, dict)]


def _tool_part(call: dict[str, Any]) -> Part:
    full = {"errorFull": call["errorFull"]} if call.get("errorFull") else {}
    # Older clients send `params`.
    return full | {
        "type": "tool",
        "callId": call.get("callId", ""),
        "name": str(call.get("name", "")),
        "parameters": call.get("parameters") or call.get("params") or {},
        "stage": "error" if call.get("stage") == "error" else "success",
        "result": call.get("result"),
        "error": call.get("errorTrimmed") or call.get("error") or call.get("errorFull"),
        "seconds": None,
    }
