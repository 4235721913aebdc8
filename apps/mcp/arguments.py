"""A call's arguments against its tool's JSON Schema, read as models write them.

Models send numbers as strings, null for what they leave out and limits beyond the range. None of
that is worth a failed call: it is put right first, and only then does the schema decide.
"""

import math
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from apps.core.errors import InvalidInput
from apps.core.types import JSON

LONGEST_PROBLEM = 200


def accepted(schema: JSON, given: Mapping[str, Any]) -> JSON:
    """The arguments that satisfy `schema`.

    Numeric strings become numbers, numbers move into their range; an optional argument that is
    null, or blank or zero where that is out of range, counts as left out (docs/contract.md §4.2).
    Raises InvalidInput VALIDATION_FAILED whose details.details lists everything that is wrong.
    """
    known: JSON = schema.get("properties", {})
    needed = schema.get("required", ())
    arguments = {
        name: _fitted(value, known.get(name, {}))
        for name, value in given.items()
        if name in needed or not _left_out(value, known.get(name, {}))
    }
    found = Draft202012Validator(schema).iter_errors(arguments)
    problems = sorted({_problem(error, known) for error in found})
    if problems:
        raise InvalidInput("; ".join(problems), details={"details": problems})
    return arguments


def _types(schema: JSON) -> set[str]:
    named = schema.get("type", ())
    return {named} if isinstance(named, str) else set(named)


def _left_out(value: Any, schema: JSON) -> bool:
    types = _types(schema)
    if value is None:
        return bool(types) and "null" not in types
    if value == "":
        return bool(types) and schema.get("minLength", "string" not in types) > 0
    number = _number(value) if types & {"integer", "number"} else None
    return number == 0 and (schema.get("minimum", 0) > 0 or schema.get("maximum", 0) < 0)


def _fitted(value: Any, schema: JSON) -> Any:
    types = _types(schema)
    if isinstance(value, str) and "string" in types or not types & {"integer", "number"}:
        return value
    number = _number(value)
    if number is None:
        return value
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return max(low, min(high, number))


def _number(value: Any) -> int | float | None:
    """A number, also one that is written as a string; whole ones as int. None: not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        # A whole number too large for a float still is one.
        return value if isinstance(value, int) else None
    if not math.isfinite(number):
        return None
    if isinstance(value, int):
        return value
    return int(number) if number.is_integer() else number


def _problem(error: ValidationError, known: JSON) -> str:
    where = ".".join(str(step) for step in error.absolute_path)
    match error.validator:
        case "required" if not where:
            return error.message.split("'")[1] + " is required"
        case "additionalProperties" if not where:
            return f"{error.message[:LONGEST_PROBLEM]}; known are: {', '.join(known) or 'none'}"
    text: str = error.message
    if len(text) > LONGEST_PROBLEM:
        # It quotes the argument: what it breaks says as much.
        text = f"breaks {error.validator} {error.validator_value}"[:LONGEST_PROBLEM]
    return f"{where}: {text}" if where else text
