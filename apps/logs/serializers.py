"""The body of `POST /logs` (contract.md §9): validated as a whole, then cleaned like our entries.

Three string fields differ on the wire: `RedactedStringField` here changes its text,
`VerbatimStringField` (apps.conversations) stores it unchanged or rejects it, `UTF8StringField`
(apps.ingest) trims it.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework import serializers

from apps.core.errors import InvalidInput
from apps.core.values.times import wire_time
from apps.logs.context import request_id
from apps.logs.redaction import clean, clean_text
from apps.logs.types import LEVELS, SOURCES


class RedactedStringField(serializers.Field[str, Any, str, Any]):
    """A string of any characters and length, also empty; numbers are not converted.

    `clean_text` redacts secrets, escapes invisible characters and cuts it to 16,000 characters.
    """

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be a string")
        return clean_text(data)


class TimestampField(RedactedStringField):
    """An ISO 8601 time, converted to UTC. A time without a zone is UTC."""

    def to_internal_value(self, data: Any) -> str:
        try:
            moment = datetime.fromisoformat(data)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            aware.timestamp()
            aware + timedelta(days=1)  # the page rounds up, and charts beyond the last line
            return wire_time(aware)
        except (TypeError, ValueError, OverflowError):
            raise serializers.ValidationError("must be an ISO time") from None


class ContextField(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """An object of any JSON values, cleaned."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("must be an object")
        cleaned: dict[str, Any] = clean(data)
        return cleaned


class EntrySerializer(serializers.Serializer[Any]):
    """A log entry. Unknown keys are ignored; the server assigns `sequence`."""

    level = serializers.ChoiceField(LEVELS)
    message = RedactedStringField()
    timestamp = TimestampField()
    source = serializers.ChoiceField(SOURCES)  # type: ignore[assignment]
    requestId = RedactedStringField(required=False)
    correlationId = RedactedStringField(required=False)
    userAgent = RedactedStringField(required=False)
    url = RedactedStringField(required=False)
    route = RedactedStringField(required=False)
    tags = serializers.ListField(child=RedactedStringField(), required=False)
    context = ContextField(required=False)  # type: ignore[assignment]

    @classmethod
    def parse(cls, body: Any) -> list[dict[str, Any]]:
        """Parse a body, one entry or a list. Raises InvalidInput if any entry is invalid."""
        entries = body if isinstance(body, list) else [body]
        serializer = cls(data=entries, many=True, allow_empty=False)
        if not serializer.is_valid():
            raise InvalidInput("Every entry needs level, message, timestamp and source.")
        return [{"requestId": request_id.get(), **entry} for entry in serializer.validated_data]
