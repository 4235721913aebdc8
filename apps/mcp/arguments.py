"""Read a call's arguments, leniently, and check them once.

Models send numbers, booleans and lists as strings, null for arguments that they leave out, and
limits outside the range; clients add arguments of their own. `read_arguments` corrects these first.
Then one of two checks follows: the tool's JSON Schema, or the check of the tool itself
(`McpTool.checks_arguments`).
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from apps.core.errors import InvalidInput
from apps.core.types import JSON
from apps.mcp.types import McpTool
from apps.mcp.wire import Message, RpcError, read_json

MAX_PROBLEM_LENGTH = 200
# Of unknown arguments: how many are named, and how much of a name is compared and quoted.
MAX_UNKNOWN, MAX_NAME = 5, 60
LIKENESS = 0.5
# What clients add to the arguments of any tool, besides names that begin with `_`.
OF_CLIENTS = frozenset(
    {
        # n8n: https://github.com/n8n-io/n8n/issues/21500 and 21716
        *("toolCallId", "sessionId", "action", "chatInput", "tool"),
        "wait_for_previous",  # https://github.com/google-gemini/gemini-cli/issues/27403
        "task_progress",  # https://github.com/cline/cline/pull/9951
        "tool_call_description",  # https://github.com/cyanheads/mcp-ts-core/issues/453
        "random_string",  # Cursor, for tools without required arguments
    }
)


def read_arguments(tool: McpTool, received: Mapping[str, Any]) -> JSON:
    """Return the corrected arguments (docs/contract.md §4.2).

    Strings become what the schema asks for: numbers, which are clamped to their range, booleans and
    lists. A text stays as it is where only text is allowed. An optional argument is left out if it
    is null, or if it is blank or zero and its schema does not allow that; so are those that clients
    add (OF_CLIENTS).

    Raises InvalidInput VALIDATION_FAILED whose details.details lists all problems. If the tool
    checks its arguments itself, the only problems are unknown names.
    """
    schema = tool.input_schema
    properties: JSON = {**schema.get("properties", {}), **tool.unlisted}
    required = schema.get("required", ())
    is_open = schema.get("additionalProperties", True)
    known = {
        name: value
        for name, value in received.items()
        if name in properties or (is_open and not _is_of_client(name))
    }
    arguments = {
        name: _coerce(value, properties.get(name, {}))
        for name, value in known.items()
        if name in required or not _is_omitted(value, properties.get(name, {}))
    }
    unknown = [name for name in received if name not in known and not _is_of_client(name)]
    problems = [_unknown(name, properties) for name in unknown[:MAX_UNKNOWN]]
    if not tool.checks_arguments:
        errors = SchemaValidator(schema | {"properties": properties}).iter_errors(arguments)
        problems += sorted({_problem(error) for error in errors})
    if problems:
        raise InvalidInput("; ".join(problems), details={"details": problems})
    return arguments


def with_object(message: Message) -> Message:
    """The message of a call, with its arguments as an object if they are the JSON text of one."""
    arguments = message.params.get("arguments")
    if message.method != "tools/call" or not isinstance(arguments, str):
        return message
    value = _json(arguments) if arguments.strip() else {}
    if not isinstance(value, dict):
        return message
    return replace(message, params={**message.params, "arguments": value})


def _json(text: str) -> Any:
    """The value of a JSON text; None if it is none, or one that `wire` would refuse."""
    try:
        return read_json(text.encode())
    except (RpcError, UnicodeEncodeError):
        return None


def _is_of_client(name: str) -> bool:
    return name.startswith("_") or name in OF_CLIENTS


def _unknown(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name[:MAX_NAME].lower(), known, 1, LIKENESS)
    instead = f"did you mean {near[0]}?" if near else f"known are: {', '.join(known) or 'none'}"
    return f"unknown parameter {name[:MAX_NAME]}; {instead}"


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
    if "array" in types:
        return _as_list(value, types)
    if isinstance(value, str) and "string" in types:
        return value
    if "boolean" in types and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    number = _number(value) if types & {"integer", "number"} else None
    if number is None:
        return value
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return max(low, min(high, number))


def _as_list(value: Any, types: set[str]) -> Any:
    """A list: one in JSON, or one value where only a list is allowed."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        texts = _json(value)
        if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
            return texts
    return value if isinstance(value, list) or types > {"array"} else [value]


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


def _problem(error: ValidationError) -> str:
    path = ".".join(str(step) for step in error.absolute_path)
    if error.validator == "required" and not path:
        return error.message.split("'")[1] + " is required"
    text: str = error.message
    if len(text) > MAX_PROBLEM_LENGTH:
        # The message quotes the argument; the rule alone is short.
        text = f"breaks {error.validator} {error.validator_value}"[:MAX_PROBLEM_LENGTH]
    return f"{path}: {text}" if path else text
