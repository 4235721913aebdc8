"""How a tool's result is put before a model: as delimited data, and no more of it than it needs.

What a tool returns was written by whoever wrote the ingested files. It is JSON between tags, and
nothing in it can close those tags or pass for a control token of a chat template.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from apps.agents.messages import ToolResult
from apps.core.types import JSON

CLOSING = "</tool_result>"

# Our own tags, and what chat templates mark turns, tools and instructions with (ChatML and Llama 3,
# DeepSeek, Gemma, Llama 2, Mistral, Qwen), in any letter case: a model reads those of others, too.
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


def as_data(result: ToolResult) -> str:
    """The text of the tool message that answers `result.call`."""
    data = json.dumps(_body(result), ensure_ascii=False, separators=(",", ":"), default=str)
    return f'<tool_result name="{_name(result)}">\n{_defused(data)}\n{CLOSING}'


def shortened(text: str, limit: int) -> str:
    """At most about `limit` characters of a tool message, still delimited, and saying so."""
    if len(text) <= limit:
        return text
    data, _, after = text.rpartition(CLOSING)
    kept = data[:limit]
    note = f"[{len(data) - len(kept):,} characters left out for want of room]"
    return f"{kept}\n{note}\n{CLOSING}{after}"


def _name(result: ToolResult) -> str:
    return "".join(c for c in result.call.name if c.isalnum() or c in "_-.")[:64]


def _body(result: ToolResult) -> Any:
    if not result.ok:
        return {"error": {"code": result.error_code, "message": result.error_message}}
    condense = CONDENSED.get(result.call.name)
    return (
        condense(result.payload)
        if condense and isinstance(result.payload, dict)
        else result.payload
    )


def _defused(data: str) -> str:
    """JSON text in which the first character of each marker is an escape: the same to read."""
    return MARKERS.sub(lambda marker: f"\\u{ord(marker[0][0]):04x}{marker[0][1:]}", data)


def _passages(payload: JSON) -> JSON:
    return {"results": [_passage(match) for match in payload.get("results", [])]}


def _passage(match: JSON) -> JSON:
    about = {key: match[key] for key in ("symbol", "language") if match.get(key)}
    if match.get("score") is not None:
        about["score"] = round(match["score"], 3)
    lines = match.get("startLine"), match.get("endLine")
    where = place(match.get("repo", ""), match.get("relPath", ""), *lines)
    return {"citation": where, **about, "chunk": match.get("chunk", "")}


def place(repo: str, path: str, start: int | None, end: int | None) -> str:
    """How code is cited: `repo/path:start-end`, lines 1-based, both included."""
    return f"{repo}/{path}" if start is None else f"{repo}/{path}:{start}-{end}"


def _repositories(payload: JSON) -> JSON:
    wanted = ("id", "description", "lastIngestAt", "counts", "lastError")
    return {"repos": [{key: repo.get(key) for key in wanted} for repo in payload.get("repos", [])]}


def _symbols(payload: JSON) -> JSON:
    """Definitions or references: what tells them apart, and how each is cited."""
    about = {key: payload[key] for key in ("match", "truncated") if payload.get(key)}
    return {**about, "results": [_symbol(found) for found in payload.get("results", [])]}


def _symbol(found: JSON) -> JSON:
    about = {key: found[key] for key in ("kind", "symbol", "match") if found.get(key)}
    lines = found.get("startLine"), found.get("endLine")
    where = place(found.get("repo", ""), found.get("relPath", ""), *lines)
    return {"citation": where, **about, "chunk": found.get("chunk", "")}


def _outline(payload: JSON) -> JSON:
    """One line for each definition, those inside another one further in."""
    lines: list[str] = []
    waiting = [(0, symbol) for symbol in reversed(payload.get("symbols", []))]
    while waiting:
        depth, symbol = waiting.pop()
        head = symbol.get("signature") or symbol.get("name")
        span = f"{symbol.get('startLine')}-{symbol.get('endLine')}"
        lines.append(f"{'  ' * depth}{span} {symbol.get('kind')}: {head}")
        waiting.extend((depth + 1, child) for child in reversed(symbol.get("children", [])))
    file = place(payload.get("repo", ""), payload.get("relPath", ""), None, None)
    return {"file": file, "outline": "\n".join(lines)}


# Paths of this machine, ids and summaries are of no use to a model.
CONDENSED: dict[str, Callable[[JSON], JSON]] = {
    "VectorSearch": _passages,
    "FindDefinitions": _symbols,
    "FindReferences": _symbols,
    "FileOutline": _outline,
    "ListIngestedRepositories": _repositories,
}
