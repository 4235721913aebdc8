"""Quote tool results for a model: JSON between tags, reduced to the fields that a model needs.

Results contain text of ingested files, which is untrusted. No text in a result can close the tags
or act as a control token of a chat template.
"""

import json
import re
from typing import Any

from apps.agents.messages import ToolResult
from apps.tools.tools import TOOLS_BY_NAME

CLOSING = "</tool_result>"

# Our own tags, and the control tokens of chat templates (ChatML and Llama 3, DeepSeek, Gemma,
# Llama 2, Mistral, Qwen) in any case: a model may understand the tokens of other models.
MARKERS = re.compile(
    r"""
      <[|\uff5c]
    | </?\s{0,3}tool_result
    | </?(?:s|bos|eos|think|tool_call|tool_response|tools|start_of_turn|end_of_turn)>
    | <</?SYS>>
    | \[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|ARGS|THINK)\]
    """,
    re.IGNORECASE | re.VERBOSE,
)


def quote_result(result: ToolResult) -> str:
    """Return the text of the tool message that answers `result.call`."""
    data = json.dumps(_body(result), ensure_ascii=False, separators=(",", ":"), default=str)
    # The first character of each marker as its escape in JSON: the value is equal.
    data = MARKERS.sub(lambda marker: f"\\u{ord(marker[0][0]):04x}{marker[0][1:]}", data)
    name = "".join(c for c in result.call.name if c.isalnum() or c in "_-.")[:64]
    return f'<tool_result name="{name}">\n{data}\n{CLOSING}'


def truncate_result_text(text: str, limit: int) -> str:
    """Cut a tool message to about `limit` characters; keep its closing tag and add a note."""
    if len(text) <= limit:
        return text
    data, _, tail = text.rpartition(CLOSING)
    head = data[:limit]
    note = f"[{len(data) - len(head):,} characters left out for want of room]"
    return f"{head}\n{note}\n{CLOSING}{tail}"


def _body(result: ToolResult) -> Any:
    if not result.ok:
        return {"error": result.error}
    tool = TOOLS_BY_NAME.get(result.call.name)
    if tool is None or not isinstance(result.payload, dict):
        return result.payload
    try:
        return tool.quoted(result.payload)
    except (AttributeError, KeyError, TypeError):
        return result.payload  # from another program of that name
