"""The quoted form of the tools' outputs, which the chat gives to a model: rows with citations,
without host paths, ids and summaries, which are useless to it.
"""

from apps.core.types import JSON
from apps.tools.compact_texts import compact_grep, compact_read
from apps.tools.context_form import compact_context


def quoted_matches(payload: JSON) -> JSON:
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


def quoted_repositories(payload: JSON) -> JSON:
    fields = ("id", "description", "lastIngestAt", "counts", "lastError")
    repos = [{key: repo.get(key) for key in fields} for repo in payload.get("repos", [])]
    return {"repos": repos, **_set(payload, "nextCursor", "hint")}


def quoted_symbols(payload: JSON) -> JSON:
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


def quoted_outline(payload: JSON) -> JSON:
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


def quoted_grep(payload: JSON) -> JSON:
    """The lines of Grep by file, or its files by repository."""
    found = compact_grep(payload)
    return found | {"results": [_with_file(row) for row in found["results"]]}


def quoted_context(payload: JSON) -> JSON:
    """Passages and definitions with their citations; callers, tests and mentions as lines."""
    form = compact_context(payload)
    return form | {"results": [_cited(row) for row in form["results"]]}


def _cited(row: JSON) -> JSON:
    place = f"{row['repo']}/{row['relPath']}:{row['lines']}"
    fields = ("symbol", "definitionOf", "weak")
    named = {key: row[key] for key in fields if key in row}
    return {"citation": place, **named, "chunk": "\n".join(row["chunk"])}


def quoted_read(payload: JSON) -> JSON:
    return _with_file(compact_read(payload))


def _with_file(row: JSON) -> JSON:
    """The row with the path as a citation has it."""
    if "relPath" not in row:
        return row
    rest = {key: value for key, value in row.items() if key not in ("repo", "relPath")}
    return {"file": place(row["repo"], row["relPath"], None, None), **rest}
