"""Builds JSON Schemas: of the tools' results, and of the API's bodies."""

from apps.core.types import JSON


def typed(kind: str, description: str) -> JSON:
    return {"type": kind, "description": description}


def text_schema(longest: int, description: str) -> JSON:
    """A text that is not empty, of so many characters at most."""
    return TEXT | {"minLength": 1, "maxLength": longest, "description": description}


def list_schema(item: JSON) -> JSON:
    return {"type": "array", "items": item}


def object_schema(required: JSON, optional: JSON | None = None) -> JSON:
    """The schema of an object. Later versions may add members, so others are allowed."""
    return {"type": "object", "properties": required | (optional or {}), "required": list(required)}


def closed(schema: JSON) -> JSON:
    """The same schema of an object, without members that it does not name."""
    return schema | {"additionalProperties": False}


def or_null(schema: JSON) -> JSON:
    """The same schema, with null as a further value. Some clients refuse a list of types."""
    described = {key: schema[key] for key in ("description",) if key in schema}
    rest = {key: value for key, value in schema.items() if key not in described}
    return {"anyOf": [rest, {"type": "null"}], **described}


def either(first: JSON, second: JSON) -> JSON:
    """A schema that accepts what either schema accepts, and is one object if both are objects.
    Descriptions are those of `first`."""
    if first.get("type") == second.get("type") == "object":
        here, there = first.get("properties", {}), second.get("properties", {})
        both = {name: either(here[name], there[name]) for name in here.keys() & there.keys()}
        required = set(second.get("required", ()))
        return object_schema({}, here | there | both) | {
            "required": [name for name in first.get("required", ()) if name in required]
        }
    if first.get("type") == second.get("type") == "array":
        return {**first, "items": either(first["items"], second["items"])}
    types = [{k: v for k, v in schema.items() if k != "description"} for schema in (first, second)]
    return first if types[0] == types[1] else {"anyOf": [first, second]}


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
