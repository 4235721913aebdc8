"""Quote tool results for a model: JSON between tags, reduced to the fields that a model needs.

Results contain text of ingested files, which is untrusted. No text in a result can close the tags
or act as a control token of a chat template.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from apps.agents.messages import ToolResult
from apps.core.types import JSON
from apps.tools.compact_texts import compact_grep, compact_list, compact_read
from apps.tools.context_form import compact_context

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
    return f'<tool_result name="{_name(result)}">\n{_escape_markers(data)}\n{CLOSING}'


def truncate_result_text(text: str, limit: int) -> str:
    """Cut a tool message to about `limit` characters; keep its closing tag and add a note."""
    if len(text) <= limit:
        return text
    data, _, tail = text.rpartition(CLOSING)
    head = data[:limit]
    note = f"[{len(data) - len(head):,} characters left out for want of room]"
    return f"{head}\n{note}\n{CLOSING}{tail}"


def _name(result: ToolResult) -> str:
    return "".join(c for c in result.call.name if c.isalnum() or c in "_-.")[:64]


def _body(result: ToolResult) -> Any:
    if not result.ok:
        return {"error": {"code": result.error_code, "message": result.error_message}}
    condense = CONDENSERS.get(result.call.name)
    if condense is None or not isinstance(result.payload, dict):
        return result.payload
    try:
        return condense(result.payload)
    except (AttributeError, KeyError, TypeError):
        return result.payload  # from another program of that name


def _escape_markers(data: str) -> str:
    """Replace the first character of each marker in JSON text by its escape: the value is equal."""
    return MARKERS.sub(lambda marker: f"\\u{ord(marker[0][0]):04x}{marker[0][1:]}", data)


def _passages(payload: JSON) -> JSON:
    fields = {key: payload[key] for key in ("degraded", "missingWords") if payload.get(key)}
    return {**fields, "results": [_passage(match) for match in payload.get("results", [])]}


def _passage(match: JSON) -> JSON:
    fields = {key: match[key] for key in ("symbol", "language", "weak") if match.get(key)}
    if match.get("score") is not None:
        fields["score"] = round(match["score"], 3)
    lines = match.get("startLine"), match.get("endLine")
    citation = place(match.get("repo", ""), match.get("relPath", ""), *lines)
    return {"citation": citation, **fields, "chunk": match.get("chunk", "")}


def place(repo: str, path: str, start: int | None, end: int | None) -> str:
    """Return a citation, `repo/path:start-end`: lines 1-based, both inclusive."""
    return f"{repo}/{path}" if start is None else f"{repo}/{path}:{start}-{end}"


def _repositories(payload: JSON) -> JSON:
    fields = ("id", "description", "lastIngestAt", "counts", "lastError")
    repos = [{key: repo.get(key) for key in fields} for repo in payload.get("repos", [])]
    return {"repos": repos, **_set(payload, "nextCursor", "hint")}


def _symbols(payload: JSON) -> JSON:
    """Definitions, references, callers or imports, each with its citation."""
    fields = _set(payload, "match", "libraries", "truncated", "notes", "nextCursor", "hint")
    return {**fields, "results": [_symbol(match) for match in payload.get("results", [])]}


def _set(payload: JSON, *names: str) -> JSON:
    """The fields with these names that say something."""
    return {name: payload[name] for name in names if payload.get(name)}


def _symbol(match: JSON) -> JSON:
    names = ("kind", "symbol", "match", "callee", "depth", "target")
    fields = {key: match[key] for key in names if match.get(key)}
    lines = match.get("startLine"), match.get("endLine")
    citation = place(match.get("repo", ""), match.get("relPath", ""), *lines)
    return {"citation": citation, **fields, "chunk": match.get("chunk", "")}


def _outline(payload: JSON) -> JSON:
    """One line for each definition, indented by its depth."""
    lines: list[str] = []
    stack = [(0, symbol) for symbol in reversed(payload.get("symbols", []))]
    while stack:
        depth, symbol = stack.pop()
        head = symbol.get("signature") or symbol.get("name")
        span = f"{symbol.get('startLine')}-{symbol.get('endLine')}"
        lines.append(f"{'  ' * depth}{span} {symbol.get('kind')}: {head}")
        stack.extend((depth + 1, child) for child in reversed(symbol.get("children", [])))
    file = place(payload.get("repo", ""), payload.get("relPath", ""), None, None)
    return {"file": file, "outline": "\n".join(lines)}


def _lines(payload: JSON) -> JSON:
    """The lines of Grep by file, or its files by repository."""
    found = compact_grep(payload)
    return found | {"results": [_with_file(row) for row in found["results"]]}


def _context(payload: JSON) -> JSON:
    """Passages and definitions with their citations; callers, tests and mentions as lines."""
    form = compact_context(payload)
    return form | {"results": [_cited(row) for row in form["results"]]}


def _cited(row: JSON) -> JSON:
    place = f"{row['repo']}/{row['relPath']}:{row['lines']}"
    fields = ("symbol", "definitionOf", "weak")
    named = {key: row[key] for key in fields if key in row}
    return {"citation": place, **named, "chunk": "\n".join(row["chunk"])}


def _read(payload: JSON) -> JSON:
    return _with_file(compact_read(payload))


def _with_file(row: JSON) -> JSON:
    """The row with the path as a citation has it."""
    if "relPath" not in row:
        return row
    rest = {key: value for key, value in row.items() if key not in ("repo", "relPath")}
    return {"file": place(row["repo"], row["relPath"], None, None), **rest}


# Tool name → the payload without host paths, ids and summaries, which are useless to a model.
CONDENSERS: dict[str, Callable[[JSON], JSON]] = {
    "VectorSearch": _passages,
    "FindDefinitions": _symbols,
    "FindReferences": _symbols,
    "FindCallers": _symbols,
    "FindImports": _symbols,
    "FileOutline": _outline,
    "ListIngestedRepositories": _repositories,
    "Context": _context,
    "RelatedCode": _passages,
    "Grep": _lines,
    "ReadFile": _read,
    "ListFiles": compact_list,
}
