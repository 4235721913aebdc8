"""Builds JSON Schemas: of the tools' results, and of the API's bodies."""

from apps.core.types import JSON


def typed(kind: str | list[str], description: str) -> JSON:
    return {"type": kind, "description": description}


def list_schema(item: JSON) -> JSON:
    return {"type": "array", "items": item}


def object_schema(required: JSON, optional: JSON | None = None) -> JSON:
    """The schema of an object. Later versions may add members, so others are allowed."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
    }


def closed(schema: JSON) -> JSON:
    """The same schema of an object, without members that it does not name."""
    return schema | {"additionalProperties": False}


def or_null(schema: JSON) -> JSON:
    """The same schema, with null as a further value. Its type is one word."""
    return schema | {"type": [schema["type"], "null"]}


def one_of(*words: str) -> JSON:
    return {"type": "string", "enum": list(words)}


TEXT: JSON = {"type": "string"}
NOT_BLANK: JSON = {"type": "string", "pattern": r"\S"}
BOOLEAN: JSON = {"type": "boolean"}
COUNT: JSON = {"type": "integer", "minimum": 0}
NUMBER: JSON = {"type": "number"}
TIME: JSON = {"type": "string", "format": "date-time"}
# An object of any members.
OBJECT: JSON = {"type": "object"}
