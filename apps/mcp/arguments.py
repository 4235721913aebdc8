"""Read a call's arguments, leniently, and check them once.

Models send numbers as strings, null for arguments that they leave out, and limits outside the
range. `read_arguments` corrects these first. Then one of two checks follows: the tool's JSON
Schema, or the check of the tool itself (`McpTool.checks_arguments`).
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from apps.core.errors import InvalidInput
from apps.core.types import JSON
from apps.mcp.types import McpTool

MAX_PROBLEM_LENGTH = 200


def read_arguments(tool: McpTool, received: Mapping[str, Any]) -> JSON:
    """Return the corrected arguments (docs/contract.md §4.2).

    Numeric strings become numbers, and numbers are clamped to their range. An optional argument is
    left out if it is null, or if it is blank or zero and its schema does not allow that.

    Raises InvalidInput VALIDATION_FAILED whose details.details lists all problems. If the tool
    checks its arguments itself, the only problems are unknown names.
    """
    schema = tool.input_schema
    properties: JSON = schema.get("properties", {})
    required = schema.get("required", ())
    arguments = {
        name: _coerce(value, properties.get(name, {}))
        for name, value in received.items()
        if name in required or not _is_omitted(value, properties.get(name, {}))
    }
    checked = _names_only(schema) if tool.checks_arguments else schema
    errors = SchemaValidator(checked).iter_errors(arguments)
    problems = sorted({_problem(error, properties) for error in errors})
    if problems:
        raise InvalidInput("; ".join(problems), details={"details": problems})
    return arguments


def _check_pattern(
    validator: Validator, pattern: str, value: Any, schema: JSON
) -> Iterator[ValidationError]:
    # JSON Schema uses ECMA-262, whose `$` does not match before a final line break.
    if pattern.endswith("$") and isinstance(value, str) and value.endswith("\n"):
        yield ValidationError(f"{value!r} does not match {pattern!r}")
    else:
        yield from Draft202012Validator.VALIDATORS["pattern"](validator, pattern, value, schema)


SchemaValidator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _check_pattern}
)


def _names_only(schema: JSON) -> JSON:
    """The part of an object schema that refuses unknown names."""
    return {
        "properties": dict.fromkeys(schema.get("properties", {}), {}),
        "additionalProperties": schema.get("additionalProperties", True),
    }


def _types(schema: JSON) -> set[str]:
    """The types that a schema or its alternatives allow; empty if it allows any."""
    types = [branch.get("type", ()) for branch in schema.get("anyOf", [schema])]
    return {name for type_ in types for name in ([type_] if isinstance(type_, str) else type_)}


def _is_omitted(value: Any, schema: JSON) -> bool:
    types = _types(schema)
    if value is None:
        return bool(types) and "null" not in types
    if value == "":
        texts = [option for option in schema.get("anyOf", [schema]) if "string" in _types(option)]
        return bool(types) and all(text.get("minLength", 0) > 0 for text in texts)
    number = _number(value) if types & {"integer", "number"} else None
    return number == 0 and (schema.get("minimum", 0) > 0 or schema.get("maximum", 0) < 0)


def _coerce(value: Any, schema: JSON) -> Any:
    types = _types(schema)
    if isinstance(value, str) and "string" in types or not types & {"integer", "number"}:
        return value
    number = _number(value)
    if number is None:
        return value
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return max(low, min(high, number))


def _number(value: Any) -> int | float | None:
    """The finite number in `value`, which may be a string; a whole number as int.

    None if there is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        # An int may be too large for a float.
        return value if isinstance(value, int) else None
    if not math.isfinite(number):
        return None
    if isinstance(value, int):
        return value
    return int(number) if number.is_integer() else number


def _problem(error: ValidationError, properties: JSON) -> str:
    path = ".".join(str(step) for step in error.absolute_path)
    match error.validator:
        case "required" if not path:
            return error.message.split("'")[1] + " is required"
        case "additionalProperties" if not path:
            names = ", ".join(properties) or "none"
            return f"{error.message[:MAX_PROBLEM_LENGTH]}; known are: {names}"
    text: str = error.message
    if len(text) > MAX_PROBLEM_LENGTH:
        # The message quotes the argument; the rule alone is short.
        text = f"breaks {error.validator} {error.validator_value}"[:MAX_PROBLEM_LENGTH]
    return f"{path}: {text}" if path else text
