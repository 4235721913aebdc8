"""Tool calls that a model prints as text, because its server does not know the model's format.

`printed_forms` lists what is read.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from apps.agents.events import ReasoningDelta, TextDelta, TextReclassified
from apps.agents.messages import ToolCall
from apps.agents.providers.base import ModelRequest
from apps.agents.providers.calls import new_id, with_arguments
from apps.agents.providers.printed_beginnings import may_begin
from apps.agents.providers.printed_forms import CallReader, Printed, Texts, parsed
from apps.agents.reasoning import Delta
from apps.core.http.limits import MAX_NAME
from apps.core.types import JSON
from apps.tools.tool import Tool

# A longer text is no call. In characters.
MAX_HELD = 40_000
# Whether a text may be calls is looked at after each of so many characters, then each time after so
# many more, or a sixteenth more. So it makes no difference where the fragments of the stream end.
STRIDE = 64
# Beginnings of calls that are looked at in reasoning, and the characters at its end.
MAX_IN_REASONING = 20
MAX_REASONING = 8_000

UNREADABLE = (
    "The model wrote a tool call as text that cannot be read. Ask again, or choose a model that "
    "can call tools."
)
NOT_RUN = (
    "The model wrote a tool call as text. It was not run, because this agent may do more than "
    "search."
)
NOT_OFFERED = "The model wrote a call of {name!r} as text; it may not be called here."

_IN_REASONING = re.compile(r"<(?:tool_call|function_call)s?>|<function=|\[TOOL_CALLS\]")


class PrintedCalls:
    """Holds back the text of a round while it may be nothing but calls.

    offered: the tools that the model may call.
    may_run: whether printed calls are run. The text of a repository can cause them, so only an
        agent that can do nothing but search runs them.
    """

    def __init__(self, offered: Sequence[Tool] = (), may_run: bool = True) -> None:
        self.offered, self.may_run = offered, may_run
        self.problem = self._held = self._reasoning = ""
        self._is_text = False
        self._reader = self._new_reader()
        self._read = 0  # characters of `_held`

    @classmethod
    def of(cls, request: ModelRequest) -> "PrintedCalls":
        return cls(request.tools, not (request.rights.any or request.rights.unlimited))

    def _new_reader(self) -> CallReader:
        return CallReader([tool.name for tool in self.offered])

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
                case ReasoningDelta(text=text):
                    self._reasoning = (self._reasoning + text)[-MAX_REASONING:]
                    shown.append(delta)
                case TextDelta():
                    shown.append(delta)
        return shown

    def end(self, *, is_complete: bool, has_calls: bool) -> tuple[list[Delta], list[ToolCall]]:
        """Return the rest of the text, or the calls that it holds. May set `problem`.

        is_complete: the round came to its end.
        has_calls: the server sent calls, too; then printed ones are left out.
        """
        reader = self._reader
        reader.feed(self._held[self._read :])
        if is_complete:
            reader.end()
        if not self._held.strip() and not (self._is_text or has_calls) and is_complete:
            reader = self._in_reasoning()
        is_whole = bool(reader.calls) and not reader.rest
        if not (reader.is_marked or is_whole or self._names_a_tool(reader)):
            return self._release(), []
        if has_calls or not is_complete:
            return [], []
        if not is_whole:
            if reader.is_marked and not may_begin(reader):
                return self._release(), []  # a sentence about the markup
            self.problem = UNREADABLE
            return [], []
        thought: list[Delta] = [ReasoningDelta(reader.thought)] if reader.thought else []
        return thought, self._checked(reader.calls)

    def _in_reasoning(self) -> CallReader:
        """Read the calls with which reasoning ends, if nothing follows it."""
        for beginning, _ in zip(
            _IN_REASONING.finditer(self._reasoning), range(MAX_IN_REASONING), strict=False
        ):
            reader = self._new_reader()
            reader.feed(self._reasoning[beginning.start() :])
            reader.end()
            if reader.calls and not reader.rest:
                return reader
        return self._new_reader()

    def _checked(self, printed: Sequence[Printed]) -> list[ToolCall]:
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
        self._reader = self._new_reader()
        return [TextDelta(text)] if text else []

    def _may_be_calls(self) -> bool:
        while True:
            # All that is held is read each time: longer steps in a longer text keep that linear.
            step = 1 if self._read < STRIDE else max(STRIDE, self._read // 16)
            if self._read + step > len(self._held):
                return True
            self._reader.feed(self._held[self._read : self._read + step])
            self._read += step
            if self._read > MAX_HELD or not may_begin(self._reader):
                return False

    def _names_a_tool(self, reader: CallReader) -> bool:
        """Whether the text is the beginning of a call of an offered tool, which has no end."""
        names = (f'"{tool.name}"' in reader.rest for tool in self.offered)
        return bool(reader.rest) and may_begin(reader) and any(names)


def _call(tool: Tool, arguments: Mapping[str, Any]) -> ToolCall:
    if isinstance(arguments, Texts):
        properties: JSON = tool.parameters.get("properties", {})
        arguments = {key: _typed(text, properties.get(key)) for key, text in arguments.items()}
    return with_arguments(ToolCall(new_id(), tool.name), dict(arguments))


def _typed(text: str, schema: JSON | None) -> Any:
    """Read an argument as its schema says: a text stays one, unless it may be a list and is one."""
    takes = json.dumps(schema or {})
    if '"string"' in takes and not ('"array"' in takes and text.lstrip().startswith("[")):
        return text
    value = parsed(text.strip())
    return text if value is None else value
