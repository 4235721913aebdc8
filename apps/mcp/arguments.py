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
# How often the arguments of a call may be encoded as JSON.
MAX_ENCODED = 2
# Of unknown arguments: how many are named, and how much of a name is compared and quoted.
MAX_UNKNOWN, MAX_NAME = 5, 60
LIKENESS = 0.5
# Texts that are looked for. They are never changed.
VERBATIM = frozenset({"query", "pattern", "name", "question", "instruction", "description"})
# A folder, a definition, an agent or a command may be called `none`.
NAMES = frozenset({"path", "within_path", "working_folder", "symbol", "agentName", "commandName"})
# What models write for an argument that they leave out, and for true and false.
NOTHING = frozenset({"null", "none", "undefined"})
WORDS = dict.fromkeys(("true", "yes", "on", "1"), True)
WORDS |= dict.fromkeys(("false", "no", "off", "0"), False)
# Clients that put the arguments into an object of their own.
ENVELOPES = frozenset({"arguments", "args", "input", "params", "parameters", "kwargs"})
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

    Strings become what the schema asks for: numbers, which are clamped to their range, booleans,
    lists, and a value of an enumeration in another case. A list of one is that one where no list is
    allowed. An optional argument is left out if it is null, or if it is blank or zero and its
    schema does not allow that; so are those that clients add (OF_CLIENTS).

    Raises InvalidInput VALIDATION_FAILED whose details.details lists all problems. If the tool
    checks its arguments itself, the only problems are unknown names.
    """
    schema = tool.input_schema
    properties: JSON = {**schema.get("properties", {}), **tool.unlisted}
    received = _unwrapped(received, properties)
    required = schema.get("required", ())
    is_open = schema.get("additionalProperties", True)
    known = {
        name: value
        for name, value in received.items()
        if name in properties or (is_open and not _is_of_client(name))
    }
    arguments = {
        name: value if name in VERBATIM else _coerce(value, properties.get(name, {}))
        for name, value in known.items()
        if name in required or not _is_omitted(name, value, properties.get(name, {}))
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
    """The message of a call, with its arguments as an object if they are the JSON text of one, or
    an empty list: PHP has no other empty object."""
    value = arguments = message.params.get("arguments")
    if message.method != "tools/call" or not (arguments == [] or isinstance(arguments, str)):
        return message
    # Some clients encode the text of a model, which is one already, once more.
    for _ in range(MAX_ENCODED):
        if isinstance(value, str):
            value = _json(text) if (text := _unfenced(value)) else {}
    value = {} if value == [] else value
    if not isinstance(value, dict):
        return message
    return replace(message, params={**message.params, "arguments": value})


def _unfenced(text: str) -> str:
    """A text without the fence of Markdown around it; "" for null."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") : -3].strip()
    return "" if text == "null" else text


def _unwrapped(received: Mapping[str, Any], properties: Collection[str]) -> Mapping[str, Any]:
    """The arguments of a call whose only argument is an object with them."""
    for name, value in received.items():
        if len(received) == 1 and name in ENVELOPES - set(properties) and isinstance(value, dict):
            return value
    return received


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


def _is_omitted(name: str, value: Any, schema: JSON) -> bool:
    types = _types(schema)
    may_be_word = isinstance(value, str) and name not in VERBATIM | NAMES
    is_word = may_be_word and value.lower() in NOTHING
    if value is None or (is_word and value not in schema.get("enum", ())):
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
    if types and not types & {"array", "object"}:
        value = _only(value)
    if isinstance(value, str) and "string" in types:
        return _in_case(value, schema.get("enum", ()))
    if types == {"boolean"} and isinstance(value, str | int | float):
        return WORDS.get(str(value).strip().lower(), value)
    number = _number(value) if types & {"integer", "number"} else None
    if number is None:
        return value
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return max(low, min(high, number))


def _only(value: Any) -> Any:
    """The value of a list of one, which may be in JSON."""
    values = _texts(value) if isinstance(value, str) else value
    return values[0] if isinstance(values, list) and len(values) == 1 else value


def _in_case(text: str, options: Collection[Any]) -> str:
    """The value of an enumeration that a text is in another case, else the text."""
    word = text.strip().lower()
    return text if text in options else next((o for o in options if o == word), text)


def _texts(text: str) -> list[str] | None:
    """The texts of a list in JSON, or as Python writes it; None if it is none."""
    if not text.lstrip().startswith("["):
        return None
    texts = _json(text)
    if texts is None and '"' not in text:
        texts = _json(text.replace("'", '"'))
    return texts if isinstance(texts, list) and all(isinstance(t, str) for t in texts) else None


def _as_list(value: Any, types: set[str]) -> Any:
    """A list: one in JSON, or one value where only a list is allowed."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = _texts(value[0]) or value
    if isinstance(value, str) and (texts := _texts(value)) is not None:
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
