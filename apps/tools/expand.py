"""From the compact form of the tools' outputs, which MCP returns, to the full form.

The page shows the tool calls of Codex, which calls `/mcp`. Paths and models are as they are now.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from apps.code.languages import known_type
from apps.core.types import JSON
from apps.index import queries
from apps.index.models import Root
from apps.index.paths import map_path
from apps.retrieval.repositories import repo_id
from apps.tools import shaped
from apps.tools.context.form import expanded_lines
from apps.tools.forms import CELL, DEFINITION
from apps.tools.tool import ANSWER

SYMBOL_LINE = re.compile(r" *(\d{1,9})(?:-(\d{1,9}))? (\S+) (.*)", re.DOTALL)
REFERENCE_LINE = re.compile(r"(\d{1,9}): (.*)", re.DOTALL)
LINE = re.compile(r"(\d{1,9})([:-]) ?(.*)", re.DOTALL)
COUNTED = re.compile(r"(.+): (\d+)", re.DOTALL)
ENTRY = re.compile(r"(.+?): (.*)", re.DOTALL)


def expand(output: Any) -> Any:
    """Return a compact output in the full form.

    Columns of references are lost. Any other value is returned unchanged: the output came from
    another program. Reads the database.
    """
    if not is_compact(output):
        return output
    if isinstance(output.get("text"), list):
        root = _roots().get(str(output.get("repo")))
        return {**output, "results": list(_read_rows(output, _place(output, root)))}
    if isinstance(output.get("results"), list):
        roots = _roots()
        items = [item for item in output["results"] if not isinstance(item, str)]
        rows = [row for item in items for row in _expanded(item, roots)]
        rows += _looked_up_rows(_strings(output["results"]), roots)  # of Overview
        rows += [
            {**row, **_looked_up(roots[row["repo"]], row["relPath"])}
            for row in expanded_lines(output, roots)
        ]
        return {**output, **_expanded_answer(output, roots), "results": rows}
    if isinstance(output.get("symbols"), list):
        return {**output, "symbols": [_expanded_symbol(symbol) for symbol in output["symbols"]]}
    if isinstance(output.get("repos"), list):
        return {**output, "repos": [_expanded_repository(r, output) for r in output["repos"]]}
    return output


def _expanded_answer(output: Mapping[str, Any], roots: Mapping[str, Root]) -> JSON:
    """The answer by the shape of a question in the full form, if there is one."""
    answer = output.get(ANSWER)
    if not isinstance(answer, Mapping):
        return {}
    return {ANSWER: {**answer, "rows": _looked_up_rows(answer.get("rows"), roots)}}


def _looked_up_rows(texts: Any, roots: Mapping[str, Root]) -> list[JSON]:
    """The rows of texts that `shaped.line_of` made."""
    rows = shaped.expanded(texts, roots)
    return [{**row, **_looked_up(roots[row["repo"]], row["relPath"])} for row in rows]


def is_compact(output: Any) -> bool:
    """Whether this is a compact output with rows."""
    keys = ("results", "symbols", "repos", "text")
    lists = [output.get(key) for key in keys] if isinstance(output, Mapping) else []
    return any(_is_compact_row(row) for rows in lists if isinstance(rows, list) for row in rows)


def _is_compact_row(row: Any) -> bool:
    if not isinstance(row, Mapping):
        return isinstance(row, str)  # a symbol, or a line
    counts = row.get("counts")
    is_repository = isinstance(counts, Mapping) and "embedded" not in counts
    names = ("lines", "references", "matches", "files", "entries")
    return is_repository or any(isinstance(row.get(name), str | list | Mapping) for name in names)


def _expanded(row: Any, roots: Mapping[str, Root]) -> Iterable[Any]:
    if not _is_compact_row(row):
        return [row]
    root = roots.get(str(row.get("repo")))
    place = _place(row, root)
    if isinstance(row.get("references"), Mapping):
        return list(_reference_rows(row, root))
    if any(name in row for name in ("matches", "files", "entries")):
        return list(_text_rows(row, place))
    if "references" in row:
        return [place | reference for reference in _expanded_references(row)]
    chunk = row.get("chunk")
    start, _, end = str(row.get("lines", "")).partition("-")
    lines = {"startLine": _number(start), "endLine": _number(end or start)}
    kept = {key: row[key] for key in ("symbol", "kind", "score", "weak", "cut") if key in row}
    if "definitionOf" in row:
        kept |= {"kind": "definition", "of": row["definitionOf"]}
    elif not kept.keys() & {"kind", "score"}:
        kept["kind"] = "passage"  # of Context
    text = "\n".join(map(str, chunk)) if isinstance(chunk, list) else chunk
    return [{**place, **lines, **kept, "chunk": text}]


def _reference_rows(row: Mapping[str, Any], root: Root | None) -> Iterator[JSON]:
    """The rows of FindReferences, which has the lines of a repository by file."""
    for path, lines in row["references"].items():
        place = _place({"repo": row.get("repo"), "relPath": path}, root)
        for line in _lines_below(lines, place, row.get("kind", "reference")):
            yield line | {"match": row.get("match", "identifier")}


def _expanded_references(row: Mapping[str, Any]) -> Iterable[JSON]:
    for group in _objects(row.get("references")):
        lines = group.get("lines")
        more = {key: group[key] for key in ("callee", "depth", "target") if key in group}
        if group.get("kind") in ("imports", "imported by"):
            more.setdefault("target", None)
        for line in lines if isinstance(lines, list) else ():
            if match := REFERENCE_LINE.fullmatch(str(line)):
                number = int(match[1])
                yield {
                    "startLine": number,
                    "endLine": number,
                    "symbol": group.get("symbol", ""),
                    "kind": group.get("kind", "reference"),
                    "match": row.get("match", "identifier"),
                    "chunk": match[2],
                    **more,
                }


def _expanded_symbol(symbol: Any) -> Any:
    match = SYMBOL_LINE.fullmatch(symbol) if isinstance(symbol, str) else None
    if match is None:
        return symbol
    start, end = int(match[1]), int(match[2] or match[1])
    return {"startLine": start, "endLine": end, "kind": match[3], "signature": match[4]}


def _expanded_repository(repo: Any, output: Mapping[str, Any]) -> Any:
    if not isinstance(repo, Mapping) or not isinstance(repo.get("counts"), Mapping):
        return repo
    implied = {"containerPath": repo.get("hostPath"), "modelId": output.get("lockedModelId")}
    counts = {"embedded": repo["counts"].get("chunks"), **repo["counts"]}
    return {**implied, **repo, "counts": counts}


def _roots() -> dict[str, Root]:
    return {repo_id(root): root for root in reversed(queries.published_roots())}


def _place(row: Mapping[str, Any], root: Root | None) -> JSON:
    repo, path = row.get("repo"), row.get("relPath")
    return {"repo": repo, "relPath": path, **_looked_up(root, str(path))}


def _looked_up(root: Root | None, path: str) -> JSON:
    """The facts about a file that the compact form leaves out."""
    kind = known_type(path)
    facts: JSON = {"language": kind.name} if kind else {}
    if root is None:
        return facts
    mapped = map_path(root, path)
    facts |= {"containerPath": mapped.container_path, "hostPath": mapped.host_path}
    warning = {"hostPathWarning": mapped.warning} if mapped.warning else {}
    return facts | warning | {"modelId": root.model}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _objects(value: Any) -> list[Mapping[str, Any]]:
    rows = value if isinstance(value, list) else []
    return [row for row in rows if isinstance(row, Mapping)]


def _text_rows(row: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[JSON]:
    """The rows of the full form that a compact row of Grep or ListFiles stands for; `place` has the
    facts about its file. Context is lost."""
    yield from _lines_below(row.get("matches"), place, "match")
    repo = row.get("repo")
    for text in _strings(row.get("files")):
        counted = COUNTED.fullmatch(text)
        path, count = (counted[1], {"count": int(counted[2][:9])}) if counted else (text, {})
        yield {"repo": repo, "relPath": path, "kind": "file", **count}
    for text in _strings(row.get("entries")):
        if entry := ENTRY.fullmatch(text):
            yield {"repo": repo, "relPath": entry[1], "kind": "file", "chunk": entry[2]}


def _lines_below(lines: Any, place: Mapping[str, Any], kind: str) -> Iterator[JSON]:
    """The rows of lines below headings (`forms.headed`). `kind` is that of no definition."""
    facts: JSON = {"symbol": "", "kind": kind}
    for line in _strings(lines):
        if line.startswith("@"):
            heading, cell, of_cell = line.removesuffix(")").rpartition(CELL)
            heading = heading if cell else line
            is_definition = heading.endswith(DEFINITION)
            facts = {
                "symbol": heading[1:].removesuffix(DEFINITION),
                "kind": "definition" if is_definition else kind,
            }
            facts |= {"cell": _number(of_cell)} if cell else {}
        for number, mark, text in _parsed([line]):
            if mark == ":":
                yield {**place, **facts, "startLine": number, "endLine": number, "chunk": text}


def _read_rows(output: Mapping[str, Any], place: Mapping[str, Any]) -> Iterator[JSON]:
    """The rows of ReadFile: one for each range of lines without a gap."""
    lines = list(_parsed(output.get("text")))
    for _, group in groupby(enumerate(lines), key=lambda pair: pair[1][0] - pair[0]):
        part = [line for _, line in group]
        text = "\n".join(content for _, _, content in part)
        span = {"startLine": part[0][0], "endLine": part[-1][0]}
        yield {**place, **span, "kind": "lines", "chunk": text}


def _parsed(lines: Any) -> Iterator[tuple[int, str, str]]:
    for line in _strings(lines):
        if match := LINE.fullmatch(line):
            yield int(match[1]), match[2], match[3]


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
