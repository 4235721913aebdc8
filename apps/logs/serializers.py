"""What programs send to `POST /logs`: checked whole, then cleaned as our own entries are."""

from datetime import UTC, datetime
from typing import Any

from rest_framework import serializers

from apps.core.errors import InvalidInput
from apps.core.times import wire_time
from apps.logs.context import request_id
from apps.logs.redaction import clean, clean_text
from apps.logs.types import LEVELS, SOURCES


class Text(serializers.Field[str, Any, str, Any]):
    """A string, and nothing that could be made one; any characters."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be a string")
        return clean_text(data)


class Word(Text):
    """One of a few strings."""

    def __init__(self, allowed: tuple[str, ...], **options: Any) -> None:
        super().__init__(**options)
        self.allowed = allowed

    def to_internal_value(self, data: Any) -> str:
        if data not in self.allowed:
            raise serializers.ValidationError(f"must be one of {', '.join(self.allowed)}")
        return str(data)


class Moment(Text):
    """An ISO time; one that names no zone is UTC."""

    def to_internal_value(self, data: Any) -> str:
        try:
            moment = datetime.fromisoformat(data)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            aware.timestamp()
            return wire_time(aware)
        except (TypeError, ValueError, OverflowError):
            raise serializers.ValidationError("must be an ISO time") from None


class Facts(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """An object of anything."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("must be an object")
        cleaned: dict[str, Any] = clean(data)
        return cleaned


class EntrySerializer(serializers.Serializer[Any]):
    """A LogEntry. Other keys are ignored; the sequence is ours to give."""

    level = Word(LEVELS)
    message = Text()
    timestamp = Moment()
    source = Word(SOURCES)  # type: ignore[assignment]
    requestId = Text(required=False)
    correlationId = Text(required=False)
    userAgent = Text(required=False)
    url = Text(required=False)
    route = Text(required=False)
    tags = serializers.ListField(child=Text(), required=False)
    context = Facts(required=False)  # type: ignore[assignment]

    @classmethod
    def parse(cls, body: Any) -> list[dict[str, Any]]:
        """The entries of a body, which is one or a list. Raises InvalidInput if any is wrong."""
        entries = body if isinstance(body, list) else [body]
        serializer = cls(data=entries, many=True, allow_empty=False)
        if not serializer.is_valid():
            raise InvalidInput("Every entry needs level, message, timestamp and source.")
        return [{"requestId": request_id.get(), **entry} for entry in serializer.validated_data]
