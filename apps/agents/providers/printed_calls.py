"""Tool calls that a model prints as text, because its server does not know the model's format.

Read are: JSON between `<tool_call>` tags or after `<|python_tag|>` or `[TOOL_CALLS]`, bare or in a
code block; `NAME[ARGS]{…}` (Mistral); `<function=NAME>` and `<invoke name="NAME">` with parameters
(Qwen, Llama, MiniMax); `<arg_key>` (GLM); calls in channels (Harmony); and between the tokens of
DeepSeek, Kimi, Command, InternLM and Nemotron.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from apps.agents.events import ReasoningDelta, TextDelta, TextReclassified
from apps.agents.messages import ToolCall
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.calls import DECODER, with_arguments
from apps.agents.reasoning import Delta
from apps.core.http.limits import MAX_NAME
from apps.core.types import JSON
from apps.tools.tool import Tool

# A longer text is no call. In characters.
MAX_HELD = 40_000
# Text is read again after so many more characters.
STRIDE = 64

UNREADABLE = (
    "The model wrote a tool call as text that cannot be read. Ask again, or choose a model that "
    "can call tools."
)
NOT_RUN = (
    "The model wrote a tool call as text. It was not run, because this agent may do more than "
    "search."
)
NOT_OFFERED = "The model wrote a call of {name!r} as text; it may not be called here."

# What surrounds calls and says nothing else.
_WRAPPERS = re.compile(
    r"</?(?:tool_calls?|function_calls?|(?:minimax|seed):tool_call|TOOLCALL)>|<\|/?tool_call\|>"
    r"|<\|python_tag\|>|\[/?TOOL_CALLS\]|<\|call\|>|<\|eom_id\|>|[;,\s]"
    r"|<\|tool_calls_section_(?:begin|end)\|>|<\|tool_call_end\|>|<\|(?:START|END)_ACTION\|>"
    r"|<\|action_(?:start|end)\|>|<\|plugin\|>|<｜tool▁calls▁(?:begin|end)｜>|<｜tool▁call▁end｜>"
    r"|```(?:json|xml|tool_call|tool_code)?(?=[\s<]|$)"
)
_OPENINGS = (
    *("<tool_call>", "<tool_calls>", "<function_call>", "<function_calls>", "<minimax:tool_call>"),
    *("<|tool_call|>", "<|python_tag|>", "[TOOL_CALLS]", "<function=", "<invoke name="),
    *("<seed:tool_call>", "<TOOLCALL>", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    *("<|START_ACTION|>", "<|action_start|>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
    *("<|channel|>analysis to=", "<|channel|>commentary to=", "<|start|>assistant to="),
)
_CLOSINGS = (
    *("</tool_call>", "</tool_calls>", "</function_call>", "</function_calls>", "[/TOOL_CALLS]"),
    *("</minimax:tool_call>", "<|/tool_call|>", "<|call|>", "<|eom_id|>", "</seed:tool_call>"),
    *("</TOOLCALL>", "<|tool_call_end|>", "<|tool_calls_section_end|>", "<|END_ACTION|>"),
    *("<|action_end|>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"),
)
_FENCES = ("```json\n", "```xml\n", "```tool_call\n", "```tool_code\n", "```\n")
_PREFIXES = (*_OPENINGS, *_CLOSINGS, *_FENCES)
# The name of a call, before a JSON object.
_HEADER = re.compile(
    r"(?:<\|channel\|>\w{1,20} to=|<\|start\|>assistant to=)"
    r"(?:functions\.)?(?P<channel>[\w.-]{1,200})"
    r"(?:<\|channel\|>\w{1,20})?\s?(?:<\|constrain\|>)?\s?(?:json)?\s?<\|message\|>\s?(?=\{)"
    r"|<\|tool_call_begin\|>\s?(?:functions\.)?(?P<kimi>[\w.-]{1,200})(?::\d{1,4})?\s?"
    r"<\|tool_call_argument_begin\|>\s?(?=\{)"
    r"|<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?(?P<deepseek>[\w.-]{1,200})(?:<｜tool▁sep｜>)?\s?"
    r"(?:```json\s?)?(?=\{)"
    r"|(?<=\[TOOL_CALLS\])(?P<mistral>[\w.-]{1,200})(?:\[CALL_ID\][\w-]{0,200})?(?:\[ARGS\])?(?=\{)"
)
# The beginning of a block of parameters.
_BLOCK = re.compile(
    r"<function=(?P<function>[\w.-]{1,200})>|<invoke name=\"(?P<invoke>[\w.-]{1,200})\">"
    r"|(?P<glm>[\w.-]{1,200})\s{0,9}(?=<arg_key>)"
)
_BLOCK_ENDS = {"function": "</function>", "invoke": "</invoke>", "glm": "</tool_call>"}
_PARAMETER = re.compile(
    r"\s*(?:<parameter(?:=| name=\")(?P<name>[\w.-]{1,200})\"?>(?P<value>[^\0]*?)</parameter>"
    r"|<arg_key>(?P<key>[\w.-]{1,200})</arg_key>\s*<arg_value>(?P<text>[^\0]*?)</arg_value>)\s*"
)
_FIRST_KEY = re.compile(r'[\[{\s]{0,99}(?:"(?P<key>\w{0,20})(?P<rest>"[^\0]*)?)?')
_NAME_AFTER_MARKUP = re.compile(r"[\w.-]{0,200}\s{0,9}(?:$|[\[{<])")
_ARGUMENTS = ("arguments", "parameters")
_NAMES = ("name", "tool_name")
_INNER = ("tool_calls", "function", "function_call")
_KEYS = (*_NAMES, *_ARGUMENTS, *_INNER, "type", "id", "tool_call_id")

_Printed = tuple[str, Mapping[str, Any]]


@dataclass
class PrintedCalls:
    """Holds back the text of a round while it may be nothing but calls.

    offered: the tools that the model may call.
    may_run: whether printed calls are run. The text of a repository can cause them, so only an
        agent that can do nothing but search runs them.
    """

    offered: Sequence[Tool] = ()
    may_run: bool = True
    problem: str = field(default="", init=False)
    _held: str = field(default="", init=False)
    _read: int = field(default=0, init=False)
    _is_text: bool = field(default=False, init=False)

    @classmethod
    def of(cls, request: ModelRequest) -> "PrintedCalls":
        return cls(request.tools, not (request.rights.any or request.rights.unlimited))

    def feed(self, deltas: Sequence[Delta]) -> list[Delta]:
        """Return the deltas that may be shown."""
        shown: list[Delta] = []
        for delta in deltas:
            match delta:
                case TextDelta(text=text) if not self._is_text:
                    self._held += text
                    if not self._may_be_calls():
                        shown += self._release()
                case TextReclassified():
                    shown += [*self._release(), delta]
                    self._is_text = False
                case TextDelta() | ReasoningDelta():
                    shown.append(delta)
        return shown

    def end(self, *, is_complete: bool, has_calls: bool) -> tuple[list[Delta], list[ToolCall]]:
        """Return the rest of the text, or the calls that it holds. May set `problem`.

        is_complete: the round came to its end.
        has_calls: the server sent calls, too; then printed ones are left out.
        """
        printed, rest = read_calls(self._held)
        is_marked = _is_marked(self._held, rest)
        if not (is_marked or (printed and not rest) or self._names_a_tool()):
            return self._release(), []
        if has_calls or not is_complete:
            return [], []
        if rest or not printed:
            if is_marked and not _may_begin(rest, is_marked=True):
                return self._release(), []  # a sentence about the markup
            self.problem = UNREADABLE
            return [], []
        return [], self._checked(printed)

    def _checked(self, printed: Sequence[_Printed]) -> list[ToolCall]:
        tools = {tool.name: tool for tool in self.offered}
        unknown = next((name for name, _ in printed if name not in tools), None)
        if unknown is not None:
            self.problem = NOT_OFFERED.format(name=unknown[:MAX_NAME])
        elif not self.may_run:
            self.problem = NOT_RUN
        if self.problem:
            return []
        return [_call(tools[name], arguments) for name, arguments in printed]

    def _release(self) -> list[Delta]:
        text, self._held, self._read, self._is_text = self._held, "", 0, True
        return [TextDelta(text)] if text else []

    def _may_be_calls(self) -> bool:
        size = len(self._held)
        if size > MAX_HELD:
            return False
        if size > STRIDE and size < self._read + STRIDE:
            return True
        self._read = size
        _, rest = read_calls(self._held)
        return _may_begin(rest, is_marked=_is_marked(self._held, rest))

    def _names_a_tool(self) -> bool:
        """Whether the text is the beginning of a call of an offered tool, which has no end."""
        _, rest = read_calls(self._held)
        names = (f'"{tool.name}"' in rest for tool in self.offered)
        return bool(rest) and _may_begin(rest, is_marked=False) and any(names)


def read_calls(text: str) -> tuple[list[_Printed], str]:
    """Read calls from the beginning of a text; return them and the rest, "" if there is none."""
    calls: list[_Printed] = []
    at = 0
    while at < len(text):
        if wrapper := _WRAPPERS.match(text, at):
            at = wrapper.end()
        elif unit := _read_unit(text, at):
            calls += unit[0]
            at = unit[1]
        else:
            break
    return calls, text[at:]


def _read_unit(text: str, at: int) -> tuple[list[_Printed], int] | None:
    """Read what stands at a place, one call or JSON with several: the calls and their end."""
    if block := _BLOCK.match(text, at):
        return _read_block(text, block)
    header = _HEADER.match(text, at)
    if not header and text[at] not in "{[":
        return None
    try:
        value, end = DECODER.raw_decode(text, header.end() if header else at)
        if header:
            value = {"name": header[header.lastgroup or ""], "arguments": value}
        calls = list(_calls_of(value))
    except (ValueError, RecursionError):
        return None
    return None if not calls or None in calls else ([call for call in calls if call], end)


def _read_block(text: str, block: "re.Match[str]") -> tuple[list[_Printed], int] | None:
    kind = block.lastgroup or ""
    closing = _BLOCK_ENDS[kind]
    end = text.find(closing, block.end())
    if end < 0:
        return None
    body, name = text[block.end() : end], block[kind]
    arguments: Any = {}
    if body.lstrip().startswith("{"):
        with_name = f'{{"name": {json.dumps(name)}, "arguments": {body}}}'
        calls, rest = read_calls(with_name)
        return None if rest else (calls, end + len(closing))
    at = 0
    while parameter := _PARAMETER.match(body, at):
        key, value = parameter["name"] or parameter["key"], parameter["value"] or parameter["text"]
        arguments[key] = (value or "").removeprefix("\n").removesuffix("\n")
        at = parameter.end()
    return None if body[at:].strip() else ([(name, _Texts(arguments))], end + len(closing))


class _Texts(dict[str, str]):
    """Arguments without types: all are text."""


def _calls_of(value: Any) -> Iterator[_Printed | None]:
    """Yield the calls of a JSON value; None for what is no call."""
    if isinstance(value, list):
        for item in value:
            yield from _calls_of(item)
        return
    if not isinstance(value, dict) or not set(value) <= set(_KEYS):
        yield None
        return
    inner = next((value[key] for key in _INNER if value.get(key)), None)
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    if isinstance(inner, list | dict) and name is None:
        yield from _calls_of(inner)
        return
    arguments = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(arguments, str):
        arguments = _parsed(arguments)
    if name is not None and isinstance(arguments, dict):
        yield name.removeprefix("functions."), arguments
    else:
        yield None


def _parsed(text: str) -> Any:
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _is_marked(text: str, rest: str) -> bool:
    """Whether a text has markup of calls before `rest`, its end, or there."""
    read = text.removesuffix(rest)
    return rest.startswith(_OPENINGS) or any(opening in read for opening in _OPENINGS)


def _may_begin(rest: str, *, is_marked: bool) -> bool:
    """Whether a text may be the beginning of a call.

    is_marked: markup of calls precedes it, or is its own.
    """
    if not rest or any(opening.startswith(rest) for opening in _PREFIXES):
        return True
    if rest.startswith(_OPENINGS):
        return True
    if is_marked and _NAME_AFTER_MARKUP.match(rest):
        return True
    return rest[0] in "[{" and _may_be_json_call(rest)


def _may_be_json_call(rest: str) -> bool:
    match = _FIRST_KEY.fullmatch(rest)
    if match is None:
        return False
    key, following = match["key"], match["rest"]
    if key is None:
        return True
    if following is None:
        return any(known.startswith(key) for known in _KEYS)
    return key in _KEYS and _is_unfinished(rest)


def _is_unfinished(text: str) -> bool:
    """Whether a text is JSON without its end."""
    try:
        DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        # A word such as `true` may be cut, too.
        return error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()) - 5
    except (ValueError, RecursionError):
        return False
    return False


def _call(tool: Tool, arguments: Mapping[str, Any]) -> ToolCall:
    if isinstance(arguments, _Texts):
        properties: JSON = tool.parameters.get("properties", {})
        arguments = {key: _typed(text, properties.get(key)) for key, text in arguments.items()}
    return with_arguments(ToolCall(f"call_{uuid4().hex[:24]}", tool.name), dict(arguments))


def _typed(text: str, schema: JSON | None) -> Any:
    """Read an argument as its schema says: a text stays one, unless it may be a list and is one."""
    takes = json.dumps(schema or {})
    if '"string"' in takes and not ('"array"' in takes and text.lstrip().startswith("[")):
        return text
    value = _parsed(text.strip())
    return text if value is None else value
