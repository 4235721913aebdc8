"""The forms in which models print tool calls, whose servers do not know the format of the model.

Read are, between the tags and tokens of any family of models, bare, or in a code block:

- JSON of a call, a list of such, or JSON of the API, under the usual names of its keys;
- a name and the JSON of its arguments (Mistral, DeepSeek, Kimi, GLM, Harmony's channels, ReAct's
  `Action:` and `Action Input:`), and Gemma's, whose strings are between tokens;
- elements with parameters (`<function=NAME>`, `<invoke name="NAME">`, GLM's `<arg_key>`);
- calls of Python (Llama 4, LFM2, Gemma's `tool_code`).
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from warnings import catch_warnings, simplefilter

from apps.agents.providers.calls import DECODER

# A longer call of Python, or one whose JSON needs a repair, is not read. In characters.
MAX_LOOSE = 4_000
# ReAct's thought before a call.
MAX_THOUGHT = 4_000
# Of an element; the end of a parameter is looked for in all that follows.
MAX_PARAMETERS = 30

_BAR = "[|｜]"
_PREFIX = r"(?:[|｜]?\w{1,20}[|｜:])?"
# What surrounds calls, and says nothing but that calls follow.
_TOKEN = r"(?:DSML[|｜])?[\w▁]{0,20}(?:tool|function|action|ACTION|python|plugin)[\w▁]{0,30}"
_MARKUP = re.compile(
    r"</?(?:\w{1,20}:)?(?:\w{1,20}_)?(?:tool_?call|function_?call|tool_use|mcp_tool|TOOLCALL)s?>"
    rf"|</?{_BAR}/?{_TOKEN}{_BAR}?>|<{_TOKEN}{_BAR}>|<(?:start|end)_function_call>"
    rf"|<\|(?:call|eom_id)\|>|\[/?TOOL_CALLS\]|functools(?=\[)|function(?=<{_BAR}tool[_▁]sep)"
)
_BLANK = re.compile(r"[;,\s]{1,99}")
_STRAY = re.compile(r"[}\]]|</(?:function|invoke|response)>")  # after a call
_FENCE = re.compile(
    r"(?:```|~~~)(?:json|xml|python|py|tool\w{0,20}|function\w{0,20})?(?=[\s<\[{(])"
    r"|Action:\s{0,3}(?=[`\[{])",
    re.IGNORECASE,
)
# What models make up after a call, as if it had been run.
_RESPONSE = re.compile(r"<tool_response>|<function_results?>|Observation:|<\|observation\|>")
NAME = r"[\w.:/-]{1,200}"
_SEPARATOR = rf"(?:\s|<{_BAR}[\w▁]{{1,40}}{_BAR}>|\[CALL_ID\][\w-]{{1,200}}|\[ARGS\]|```(?:json)?)"
# The name of a call, before the JSON of its arguments.
_HEADER = re.compile(rf"(?P<name>{NAME}?)(?::\d{{1,4}})?{_SEPARATOR}{{0,9}}(?=\{{)")
_CHANNEL = re.compile(
    rf"(?:<\|channel\|>\w{{1,20}} to=|<\|start\|>assistant to=)(?P<name>{NAME})"
    r"(?:<\|channel\|>\w{1,20})?\s?(?:<\|constrain\|>)?\s?(?:json|code)?\s?<\|message\|>\s?(?=\{)"
)
_REACT = re.compile(rf"Action:\s{{0,3}}(?P<name>{NAME})\s{{1,3}}Action Input:\s{{0,3}}(?=\{{)")
_GEMMA = re.compile(rf"call:(?P<name>{NAME})(?=\{{)")
_GEMMA_TEXT = re.compile(r'<escape>|<\|"\|>')
_GEMMA_KEY = re.compile(r"([{,]\s{0,9})(\w{1,200})\s{0,9}:")
_GEMMA_END = re.compile(r"<end_function_call>|<tool_call\|>|<\|tool_call>")
# The beginning of an element with parameters.
_ELEMENT = re.compile(
    rf"<{_PREFIX}(?P<tag>function|invoke|tool_call)(?:=| name=)"
    rf"[\"']?(?P<name>{NAME})[\"']?\s?>"
    rf"|<(?:tool_|function_)?name>\s{{0,9}}(?P<of>{NAME})\s{{0,9}}</\w{{1,20}}>\s{{0,9}}"
    r"<(?P<within>arguments|parameters|args|params|input)>"
    rf"|(?P<glm>{NAME}?)\s{{0,9}}(?=<arg_key>|</tool_call>)"
)
_PARAMETER = re.compile(
    rf"\s{{0,99}}(?:<{_PREFIX}(?:parameter|param)(?:=| name=)"
    r"[\"']?(?P<name>[\w.-]{1,200})[^<>]{0,40}>"
    r"|<arg_key>(?P<key>[\w.-]{1,200})</arg_key>\s{0,9}<arg_value>"
    r"|<(?P<plain>[\w.-]{1,200})>)"
)
_PARAMETER_TAGS = ("parameter", "param", "arg_value")
_PARAMETER_BEGINS = re.compile(rf"<{_PREFIX}(?:parameter|param)[= ]|<arg_key>")
_ELEMENT_END = re.compile(rf"</{_PREFIX}(?P<tag>\w{{1,20}})>")
# The end of what has none of its own.
_LOOSE_END = re.compile(rf"</|```|~~~|<{_BAR}\w|<\w{{1,20}}\|>|\[/?TOOL_CALLS\]|;\s")
_PYTHON = re.compile(
    r"\[?\s{0,9}(?:print\(\s{0,9})?(?:(?:default_api|functions|tools)\.)?(?P<name>\w{1,200})(?:\.call)?\s?\("
)

_NAMES = ("name", "tool_name", "tool", "function_name", "action", "recipient_name")
_USUAL = ("arguments", "parameters")
_ARGUMENTS = (*_USUAL, "args", "params", "input", "tool_input", "action_input")
_INNER = ("tool_calls", "function_call", "function")
_OTHER = ("type", "id", "index", "call_id", "tool_call_id", "thought", "reasoning")
KEYS = (*_NAMES, *_ARGUMENTS, *_INNER, *_OTHER)
_WORDS = re.compile(r"[.:/]|__")

Printed = tuple[str, Mapping[str, Any]]


class Texts(dict[str, str]):
    """Arguments without types: all are text."""


def folded(name: str) -> str:
    """A name without what models change in it: a prefix, case, underscores."""
    return _WORDS.split(name)[-1].replace("_", "").replace("-", "").lower()


@dataclass
class CallReader:
    """Reads calls from the beginning of a text that comes in pieces.

    names: of the tools that the model may call
    calls: those read so far, with names of `names` where one is meant
    rest: the text behind them; "" if it is nothing but calls so far
    is_marked: whether markup of calls has come
    thought: what ReAct says before a call
    """

    names: Sequence[str] = ()
    calls: list[Printed] = field(default_factory=list)
    rest: str = ""
    is_marked: bool = False
    thought: str = ""

    def __post_init__(self) -> None:
        self.known = {folded(name): name for name in self.names}
        self._is_end = self._has_response = self._is_broken = False

    def feed(self, text: str) -> None:
        self.rest += text
        self._read()

    def end(self) -> None:
        """Read what needs no end of its own."""
        self._is_end = True
        self._read()

    def _read(self) -> None:
        while self.rest and not self._is_broken:
            if self._has_response:
                self.rest = ""
            elif size := self._markup() or self._unit():
                self.rest = self.rest[size:]
            else:
                break

    def _markup(self) -> int:
        """The size of what surrounds a call; 0 if none is there."""
        if match := _MARKUP.match(self.rest):
            self.is_marked = True
            return match.end()
        if self.calls and _RESPONSE.match(self.rest):
            self._has_response = True
            return len(self.rest)
        match = _BLANK.match(self.rest) or _FENCE.match(self.rest + "\n" * self._is_end)
        match = match or (_STRAY.match(self.rest) if self.is_marked and self.calls else None)
        return min(match.end(), len(self.rest)) if match else self._react()

    def _react(self) -> int:
        at = self.rest.find("\nAction:", 0, MAX_THOUGHT) + 1
        if self.calls or not at or not self.rest.startswith("Thought:"):
            return 0
        self.thought = self.rest.removeprefix("Thought:")[: at - len("Thought:")].strip()
        return at

    def _unit(self) -> int:
        """Read one call, or JSON with several. Return the size; 0 if none is there as a whole."""
        for read in (self._json, self._headed, self._element, self._gemma, self._python):
            found, size = read()
            if found:
                self.calls += [(self.known.get(folded(name), name), given) for name, given in found]
                return size
        return 0

    def _is_known(self, name: str) -> bool:
        return folded(name) in self.known

    def _json(self) -> tuple[list[Printed], int]:
        if self.rest[0] not in "[{":
            return [], 0
        try:
            value, end = DECODER.raw_decode(self.rest)
        except (ValueError, RecursionError):
            value, end = self._repaired() if self.is_marked else (None, 0)
        return self._calls_of(value), end

    def _repaired(self) -> tuple[Any, int]:
        """JSON as models break it: with the quotes of Python, a brace too many or too few."""
        end = _LOOSE_END.search(self.rest)
        if end is None or end.start() > MAX_LOOSE:
            return None, 0
        body = self.rest[: end.start()].strip()
        for text in (body, f"{body}}}", body[1:-1]):
            value = parsed(text)
            if value is None:
                with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    value = _as_json(ast.literal_eval(text))
            if isinstance(value, dict | list):
                return value, end.start()
        return None, 0

    def _calls_of(self, value: Any) -> list[Printed]:
        """The calls of a JSON value; none if it has something else, too."""
        try:
            calls = list(self._each_of(value))
        except RecursionError:
            return []
        return [] if None in calls else [call for call in calls if call]

    def _each_of(self, value: Any) -> Iterator[Printed | None]:
        if isinstance(value, list):
            for item in value:
                yield from self._each_of(item)
        elif not isinstance(value, dict):
            yield None
        elif len(value) == 1 and self.is_marked and self._is_known(key := next(iter(value))):
            # Apertus. Without markup it is JSON about what has the name of a tool.
            yield (key, value[key]) if isinstance(value[key], dict) else None
        elif not set(value) <= set(KEYS):
            yield None
        else:
            yield from self._of_keys(value)

    def _of_keys(self, value: Mapping[str, Any]) -> Iterator[Printed | None]:
        name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
        inner = next((value[key] for key in _INNER if value.get(key)), None)
        if name is None and isinstance(inner, list | dict):
            yield from self._each_of(inner)
            return
        name = inner if name is None else name
        key = next((key for key in _ARGUMENTS if key in value), "")
        arguments = value.get(key)
        if isinstance(arguments, str):
            arguments = parsed(arguments)
        is_known = isinstance(name, str) and self._is_known(name)
        if arguments is None and (self.is_marked or (is_known and key)):
            arguments = {}
        # JSON that the user has asked for may have such keys, too.
        is_usual = key in _USUAL and not value.keys().isdisjoint(("name", "tool_name"))
        is_call = is_known or self.is_marked or is_usual
        if is_call and isinstance(name, str) and isinstance(arguments, dict):
            yield name, arguments
        else:
            yield None

    def _headed(self) -> tuple[list[Printed], int]:
        """A name, and the JSON of its arguments."""
        header = _CHANNEL.match(self.rest) or _REACT.match(self.rest)
        if header is None:
            header = _HEADER.match(self.rest)
            if header is None or not (self.is_marked or self._is_known(header["name"])):
                return [], 0
        try:
            value, end = DECODER.raw_decode(self.rest, header.end())
        except (ValueError, RecursionError):
            return [], 0
        return [(header["name"], value)], end

    def element(self) -> "re.Match[str] | None":
        """The beginning of an element with parameters, if the rest is one and not other XML."""
        found = _ELEMENT.match(self.rest)
        if found is None or self.is_marked or self._is_known(found["name"] or ""):
            return found
        return found if self.rest.startswith(("<function=", "<invoke name=")) else None

    def _element(self) -> tuple[list[Printed], int]:
        element = self.element()
        if element is None:
            return [], 0
        self.is_marked = True
        name = element["name"] or element["of"] or element["glm"]
        kind = element["tag"] or element["within"] or "tool_call"
        closing = _closing(self.rest, element.end(), kind)
        if not (closing or self._is_end):
            return [], 0
        # The tag around it may be all that ends it.
        ending = closing or _closing(self.rest, element.end(), "tool_call")
        end = ending.start() if ending else len(self.rest)
        body = self.rest[element.end() : end].strip()
        arguments: Any = parsed(body) if body.startswith("{") else _parameters(body, bool(ending))
        after = closing.end() if closing else end
        self._is_broken = not isinstance(arguments, dict)  # no text after its end makes it a call
        return ([] if self._is_broken else [(name, arguments)]), after

    def _gemma(self) -> tuple[list[Printed], int]:
        """`call:NAME{key:<|"|>text<|"|>}`: keys without quotes, and texts between tokens."""
        header = _GEMMA.match(self.rest)
        end = _GEMMA_END.search(self.rest)
        if header is None or not self.is_marked or not (end or self._is_end):
            return [], 0
        size = end.start() if end else len(self.rest)
        parts = _GEMMA_TEXT.split(self.rest[header.end() : size])
        parts[::2] = [_GEMMA_KEY.sub(r'\1"\2":', part) for part in parts[::2]]
        parts[1::2] = map(json.dumps, parts[1::2])
        value = parsed("".join(parts).strip())
        return ([(header["name"], value)] if isinstance(value, dict) else []), size

    def _python(self) -> tuple[list[Printed], int]:
        """Calls of Python, or a list of such, of tools that there are."""
        start = _PYTHON.match(self.rest)
        end = _LOOSE_END.search(self.rest, 0, MAX_LOOSE)
        if start is None or not self._is_known(start["name"]) or not (end or self._is_end):
            return [], 0
        size = end.start() if end else len(self.rest)
        if size > MAX_LOOSE:
            return [], 0
        calls: list[Printed] = []
        try:
            with catch_warnings():
                simplefilter("ignore")  # such as of `"\d"`
                body = ast.parse(self.rest[:size].strip()).body
            for line in body:
                calls += self._of_python(line.value if isinstance(line, ast.Expr) else line)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            return [], 0
        return calls, size

    def _of_python(self, node: ast.AST) -> Iterator[Printed]:
        """Raises ValueError for anything but calls of tools with named arguments, and TypeError
        for arguments that JSON does not have."""
        match node:
            case ast.List(elts=items):
                for item in items:
                    yield from self._of_python(item)
            case ast.Call(func=ast.Name(id="print"), args=[inner], keywords=[]):
                yield from self._of_python(inner)
            case ast.Call(func=called, args=[], keywords=given):
                name = ast.unparse(called).removesuffix(".call")
                if not self._is_known(name) or not all(one.arg for one in given):
                    raise ValueError(name)
                yield name, {str(one.arg): _as_json(ast.literal_eval(one.value)) for one in given}
            case _:
                raise ValueError


def _closing(text: str, start: int, *tags: str) -> "re.Match[str] | None":
    """The first end of an element with one of these tags."""
    return next((one for one in _ELEMENT_END.finditer(text, start) if one["tag"] in tags), None)


def _parameters(body: str, has_end: bool) -> Texts | None:
    """The parameters in an element; None if something else is there.

    has_end: whether the element has; else the last parameter must have one
    """
    arguments, at = Texts(), 0
    for _ in range(MAX_PARAMETERS):
        if not (parameter := _PARAMETER.match(body, at)):
            break
        key, start = parameter["name"] or parameter["key"] or parameter["plain"], parameter.end()
        tags = (parameter["plain"],) if parameter["plain"] else _PARAMETER_TAGS
        close = _closing(body, start, *tags)
        following = _PARAMETER_BEGINS.search(body, start, close.start() if close else len(body))
        if not (close or has_end):
            return None
        end = following.start() if following else close.start() if close else len(body)
        arguments[key] = body[start:end].removeprefix("\n").removesuffix("\n")
        at = close.end() if close and not following else end
    return None if body[at:].strip() else arguments


def _as_json(value: Any) -> Any:
    """A value of Python as JSON has it. Raises ValueError and TypeError if it does not."""
    return DECODER.decode(json.dumps(value, allow_nan=False))


def parsed(text: str) -> Any:
    """The value of JSON; None if it is not."""
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
